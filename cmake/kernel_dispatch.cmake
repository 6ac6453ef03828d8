# One library with kernels for several instruction sets.
#
# Every file of kernels is compiled once for each set below, into a namespace of its own: `taper::kernels` becomes
# `taper::kernels_avx2`, and so on. The functions themselves are written, declared and called as if there was one set.
# What the rest of the library calls, `taper::kernels::...`, is a jump through a table that the processor chooses at the
# program's start (src/base/cpu_capability.cpp). The jumps are written by cmake/kernel_dispatch.awk from the names in the
# object files, so no list of kernels has to be kept.

# The sets, weakest first, and what they are compiled with. Full-width vectors where a processor has them.
set(taper_kernel_sets baseline avx2 avx512)
set(taper_flags_baseline "")
set(taper_flags_avx2 -march=x86-64-v3)
set(taper_flags_avx512 -march=x86-64-v4 -mprefer-vector-width=512)
# Wider vectors are for training, which is done in float32: what a set lacks is taken from the next weaker one.
set(taper_definitions_avx512 TAPER_ONLY_FLOAT32)
# Neither do these files get a kernel for them: they look up, copy and add in double precision, and take as long with
# vectors half as wide (within 2 %; gradients of max pools that overlap up to 7 % longer). Nor do max pools but for those
# of max_pool_wide.cpp: shuffles and borders of whole vectors take up to three times as long.
set(taper_kernels_without_avx512 broadcast_plan embedding index max_pool max_pool_grad max_unpool pad prelu upsample)
list(TRANSFORM taper_kernels_without_avx512 REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/src/kernels/\\1.cpp")

# Every loop is there three times, so optimised builds vectorise loops where that pays for their length, without a second
# vector loop for what is left over, and inline, align and clone loops freely only in the files below, whose loops hold
# the most work. The baseline serves old processors: it is kept small. Kernels do not throw, so the tables that an
# exception needs are left out, but for the files that may run out of memory. Files with options of their own are compiled
# alone.
set(taper_free_kernels activations avg_pool batch_norm conv conv_average conv_depthwise conv_planes conv_short conv_slab
  conv_turned cross_entropy linear max_pool max_pool_grad max_pool_wide optimizers product product_dots softmax upsample)
list(TRANSFORM taper_free_kernels REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/src/kernels/\\1.cpp")
# Loops of a few instructions take up to 1.8 times as long where they begin in one cache line and end in the next. These
# files have little else, so their loops, and those of broadcast, each begin a line; others half of one if that is near.
set(taper_tight_kernels copy elementwise index movement pad)
list(TRANSFORM taper_tight_kernels REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/src/kernels/\\1.cpp")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(taper_no_tables -fno-exceptions -fno-asynchronous-unwind-tables)
  foreach(kind plain free tight)
    set(taper_flags_baseline_${kind} -Oz ${taper_no_tables})
  endforeach()
  # Straight-line code stays as it is written: made vectors, it loads at once what was just stored one by one, and waits.
  foreach(set avx2 avx512)
    set(taper_flags_${set}_plain -O2 -ftree-vectorize -fno-tree-slp-vectorize -fvect-cost-model=dynamic
      --param=vect-epilogues-nomask=0 --param=max-inline-insns-single=30
      -falign-functions=1 -falign-loops=32:11 -falign-jumps=1 ${taper_no_tables})
    set(taper_flags_${set}_free ${taper_flags_${set}_plain} --param=max-inline-insns-single=70 -falign-loops=16:11:8)
    set(taper_flags_${set}_tight ${taper_flags_${set}_plain} --param=max-inline-insns-single=70 -falign-loops=64)
  endforeach()
  # Half the width where loops only load, do one operation and store: processors that store 512 bits in two halves then
  # reach the bandwidth of their caches wherever operands lie, with 512 bits a fifth less behind some addresses.
  # Those of PReLU with AVX2 begin half a cache line, however far it is.
  set(set_of_target "$<TARGET_PROPERTY:TAPER_KERNEL_SET>")
  set_source_files_properties(src/kernels/broadcast.cpp PROPERTIES COMPILE_OPTIONS
    "$<$<STREQUAL:${set_of_target},avx512>:-mprefer-vector-width=256>;$<$<NOT:$<STREQUAL:${set_of_target},baseline>>:-falign-loops=64>")
  set_source_files_properties(src/kernels/embedding.cpp PROPERTIES
    COMPILE_OPTIONS "-fexceptions;-fasynchronous-unwind-tables")
  set_source_files_properties(src/kernels/prelu.cpp PROPERTIES
    COMPILE_OPTIONS "-fexceptions;-fasynchronous-unwind-tables;$<$<STREQUAL:${set_of_target},avx2>:-falign-loops=32>")
endif()

# Adds the jumps to the kernels to `library`, from the object files that follow; all kernels, or those `asked` for there.
function(taper_add_jumps library asked)
  set(jumps ${CMAKE_CURRENT_BINARY_DIR}/kernel_dispatch_${library}.cpp)
  set(script ${PROJECT_SOURCE_DIR}/cmake/kernel_dispatch.awk)
  add_custom_command(OUTPUT ${jumps}
    COMMAND sh -c "nm=$1 && shift && \"$nm\" -gP \"$@\" | awk -v strict=$<CONFIG:Release> -v asked=${asked} -f \"$0\" > \"${jumps}.new\" && mv \"${jumps}.new\" \"${jumps}\"" ${script} ${CMAKE_NM} ${ARGN}
    DEPENDS ${ARGN} ${script}
    COMMENT "Writing the jumps to the kernels"
    COMMAND_EXPAND_LISTS VERBATIM)
  target_sources(${library} PRIVATE ${jumps})
endfunction()

# Adds the kernels in the list of files to the library, whose other parts are there.
function(taper_add_dispatched_kernels files)
  list(TRANSFORM taper_parts REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE callers)
  set(taper_plain_kernels ${files})
  list(REMOVE_ITEM taper_plain_kernels ${taper_free_kernels} ${taper_tight_kernels})
  foreach(set ${taper_kernel_sets})
    foreach(kind plain free tight)
      set(kernels ${taper_${kind}_kernels})
      list(REMOVE_ITEM kernels ${taper_kernels_without_${set}})
      taper_add_part(kernels_${set}_${kind} OPTIONS ${taper_flags_${set}_${kind}} TOGETHER 12 SOURCES ${kernels})
      set(part taper_kernels_${set}_${kind})
      set_target_properties(${part} PROPERTIES TAPER_KERNEL_SET ${set})
      target_compile_definitions(${part} PRIVATE kernels=kernels_${set} ${taper_definitions_${set}})
      target_compile_options(${part} PRIVATE ${taper_flags_${set}} -fvisibility=hidden)
      list(APPEND objects $<TARGET_OBJECTS:${part}>)
    endforeach()
  endforeach()
  if(BUILD_SHARED_LIBS)
    taper_add_jumps(taper 1 ${objects} ${callers})
    taper_add_jumps(taper_internal 0 ${objects})
  else()
    taper_add_jumps(taper 0 ${objects})
  endif()
  target_compile_definitions(taper_services PRIVATE TAPER_KERNEL_DISPATCH)
endfunction()
