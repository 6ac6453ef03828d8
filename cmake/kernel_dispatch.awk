# Reads what `nm -gP --defined-only` says of the kernels' object files, writes a C++ file with
#  - one table of functions for each instruction set, and
#  - for each function `taper::kernels::f` a jump to the f of the set whose table `taper_kernels` points to.
# The tables hold what is defined for all sets. A function that is missing in one is an error, unless it is inline:
# then each caller has its own. With `strict`, inline functions of others are an error (optimised builds have none).
BEGIN {
  count = split("baseline avx2 avx512", sets)
}
($2 == "T" || $2 == "W") && $1 ~ /^_ZNK?5taper[0-9]+kernels_/ && $1 !~ /Ul/ {
  name = $1
  gsub(/16kernels_baseline|12kernels_avx2|14kernels_avx512/, "7kernels", name)
  if (!(name in found)) names[++n] = name
  if (!seen[$1]++) ++found[name]
  if ($2 == "T") needed[name] = 1
}
# A shared inline function compiled for a strong set may be the copy that the whole program uses, on any processor.
$2 == "W" && $1 !~ /kernels_/ && strict {
  print "kernel_dispatch: an inline function outside of taper::kernels is not inlined: " $1 > "/dev/stderr"
  failed = 1
}
END {
  if (failed) exit 1
  print "// The jumps to the kernels; see cmake/kernel_dispatch.cmake."
  print "#pragma GCC diagnostic ignored \"-Woverlength-strings\""
  print "asm(R\"("
  for (s = 1; s <= count; ++s) {
    print "  .section .data.rel.ro,\"aw\""
    print "  .balign 8"
    print "  .globl taper_kernels_" sets[s]
    print "  .hidden taper_kernels_" sets[s]
    print "taper_kernels_" sets[s] ":"
    space = "kernels_" sets[s]
    for (i = 1; i <= n; ++i) {
      if (found[names[i]] < count) continue
      name = names[i]
      gsub(/7kernels/, length(space) space, name)
      print "  .quad " name
    }
  }
  print "  .text"
  for (i = 1; i <= n; ++i) {
    name = names[i]
    if (found[name] < count) {
      if (name in needed) {
        print "kernel_dispatch: not defined for every instruction set: " name > "/dev/stderr"
        exit 1
      }
      continue
    }
    print "  .globl " name
    print "  .hidden " name
    print "  .type " name ", @function"
    print name ":"
    print "  movq taper_kernels(%rip), %r11"
    print "  jmp *" 8 * slot++ "(%r11)"
    print "  .size " name ", . - " name
  }
  print ")\");"
}
