# Reads what `nm -gP` says of the kernels' object files, writes a C++ file with
#  - one table of functions for each instruction set, and
#  - for each function `taper::kernels::f` a jump to the f of the set whose table `taper_kernels` points to.
# With `asked`, the object files of all that calls kernels are read too, and only functions that are asked for there have
# a jump: a shared library has no other callers, and half of the kernels are called by kernels of their own set alone.
# A function that a set lacks is the one of the next weaker set. The weakest set has all, except for inline functions:
# then each caller has its own. With `strict`, inline functions of others are an error in the stronger sets (optimised
# builds have none).
BEGIN {
  count = split("baseline avx2 avx512", sets)
}
($2 == "T" || $2 == "W") && $1 ~ /^_ZNK?5taper[0-9]+kernels_/ && $1 !~ /Ul/ {
  name = $1
  gsub(/16kernels_baseline|12kernels_avx2|14kernels_avx512/, "7kernels", name)
  if (!(name in found)) names[++n] = name
  found[name]
  defined[$1]
  if ($2 == "T") needed[name]
}
$2 == "U" && $1 ~ /^_ZNK?5taper7kernels/ { called[$1] }
NF == 1 { strong = /kernels_avx/ }  # the object file that what follows is in
# A shared inline function compiled for a strong set may be the copy that the whole program uses, on any processor.
$2 == "W" && $1 !~ /kernels_/ && strict && strong {
  print "kernel_dispatch: an inline function outside of taper::kernels is not inlined: " $1 > "/dev/stderr"
  failed = 1
}
# What `name` is called in set number `s`.
function in_set(name, s) {
  gsub(/7kernels/, length("kernels_" sets[s]) "kernels_" sets[s], name)
  return name
}
END {
  if (failed) exit 1
  print "// The jumps to the kernels; see cmake/kernel_dispatch.cmake."
  print "#pragma GCC diagnostic ignored \"-Woverlength-strings\""
  print "asm(R\"("
  for (i = 1; i <= n; ++i) {
    if (asked && !(names[i] in called)) continue
    if (in_set(names[i], 1) in defined) {
      jumps[++slots] = names[i]
    } else if (names[i] in needed) {
      print "kernel_dispatch: not defined for the weakest instruction set: " names[i] > "/dev/stderr"
      exit 1
    }
  }
  # Distances instead of addresses: half as long, and nothing for the loader to do.
  print "  .section .rodata"
  print "  .balign 4"
  for (s = 1; s <= count; ++s) {
    table = "taper_kernels_" sets[s]
    print "  .globl " table
    print "  .hidden " table
    print table ":"
    for (i = 1; i <= slots; ++i) {
      for (from = s; !(in_set(jumps[i], from) in defined); --from) continue
      print "  .long " in_set(jumps[i], from) " - " table
    }
  }
  print "  .text"
  for (i = 1; i <= slots; ++i) {
    print "  .globl " jumps[i]
    print "  .hidden " jumps[i]
    print "  .type " jumps[i] ", @function"
    print jumps[i] ":"
    print "  movq taper_kernels(%rip), %r11"
    print "  movslq " 4 * (i - 1) "(%r11), %r10"
    print "  addq %r10, %r11"
    print "  jmp *%r11"
    print "  .size " jumps[i] ", . - " jumps[i]
  }
  print ")\");"
}
