# The library's parts: objects that share their options.

# In builds that are made once, for release or sanitizers, the files of `target` are compiled in groups of `count`, or
# all at once with 0: their headers, and the templates that all of them use, cost most of the time. So the names that a
# file keeps to itself must differ from those of the others.
function(taper_compile_together target count)
  if(TAPER_UNITY_BUILD AND (CMAKE_BUILD_TYPE STREQUAL "Release" OR TAPER_SANITIZE))
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${count})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      # The files' own types look like a header's.
      target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
    endif()
  endif()
endfunction()

# Adds the objects of `SOURCES` to the library as `taper_NAME`, and that to the list `taper_parts`. `OPTIONS` are those of
# release builds. `TOGETHER` is the count of files that are compiled together, as above; without it each is alone.
function(taper_add_part name)
  cmake_parse_arguments(part "" "TOGETHER" "OPTIONS;SOURCES" ${ARGN})
  set(part_name taper_${name})
  set(taper_parts ${taper_parts} ${part_name} PARENT_SCOPE)
  add_library(${part_name} OBJECT ${part_SOURCES})
  target_compile_features(${part_name} PRIVATE cxx_std_20)
  target_compile_options(${part_name} PRIVATE "$<$<CONFIG:Release>:${part_OPTIONS}>")
  target_compile_definitions(${part_name} PRIVATE TAPER_VERSION="${PROJECT_VERSION}")
  target_include_directories(${part_name} PRIVATE
    ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/modules)
  target_link_libraries(${part_name} PRIVATE taper_build ZLIB::ZLIB nlohmann_json::nlohmann_json)
  if(TAPER_WITH_OPENMP)
    target_link_libraries(${part_name} PRIVATE OpenMP::OpenMP_CXX)
  endif()
  if(DEFINED part_TOGETHER)
    taper_compile_together(${part_name} ${part_TOGETHER})
  endif()
  target_sources(taper PRIVATE $<TARGET_OBJECTS:${part_name}>)
  if(BUILD_SHARED_LIBS)
    set_target_properties(${part_name} PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden
      VISIBILITY_INLINES_HIDDEN ON)
    target_compile_options(${part_name} PRIVATE -fno-semantic-interposition -ffunction-sections -fdata-sections)
    target_sources(taper_internal PRIVATE $<TARGET_OBJECTS:${part_name}>)
  endif()
endfunction()
