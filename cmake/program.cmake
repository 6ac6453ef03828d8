# The program `taper`.
find_package(CLI11 2.1 REQUIRED)

file(GLOB cli_sources CONFIGURE_DEPENDS src/cli/*.cpp)
# The objects do not link to the library, or they would wait for its kernels.
add_library(taper_cli_objects OBJECT ${cli_sources})
taper_compile_together(taper_cli_objects 0)
target_compile_features(taper_cli_objects PRIVATE cxx_std_20)
target_include_directories(taper_cli_objects PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(taper_cli_objects PRIVATE taper_build CLI11::CLI11 nlohmann_json::nlohmann_json)
target_compile_options(taper_cli_objects PRIVATE $<$<CONFIG:Release>:-Og> ${taper_short_checks})
target_compile_definitions(taper_cli_objects PRIVATE TAPER_VERSION="${PROJECT_VERSION}")
add_executable(taper-cli $<TARGET_OBJECTS:taper_cli_objects>)
set_target_properties(taper-cli PROPERTIES OUTPUT_NAME taper LINKER_LANGUAGE CXX)
target_link_libraries(taper-cli PRIVATE taper_internal)

# What `taper env` says of the build.
string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
string(STRIP "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${build_type}}" flags)
if(TAPER_NATIVE)
  string(APPEND flags " -march=native")
endif()
if(TAPER_SANITIZE)
  string(APPEND flags " -fsanitize=${TAPER_SANITIZE}")
endif()
target_compile_definitions(taper_cli_objects PRIVATE
  "TAPER_COMPILER=\"${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}\""
  "TAPER_BUILD_TYPE=\"${CMAKE_BUILD_TYPE}\""
  "TAPER_FLAGS=\"${flags}\""
  "TAPER_OPENMP=\"$<IF:$<BOOL:${TAPER_WITH_OPENMP}>,${OpenMP_CXX_VERSION},off>\""
  "TAPER_JSON=\"${nlohmann_json_VERSION}\""
  "TAPER_ZLIB=\"${ZLIB_VERSION_STRING}\"")

include(GNUInstallDirs)
install(TARGETS taper-cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
