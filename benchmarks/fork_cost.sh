#!/bin/bash
# CPU time of a fork, of parent and child, with 400 MiB of blocks: glibc, libhmalloc with the heap
# near and in shared memory, and a copy of as many bytes, all in turns.
# Prints median [smallest, largest] of PAIRS (9) rounds. LIBRARY: another build of the preload library.
set -eu
cd "$(dirname "$0")/.."
mkdir -p build
"${CXX:-g++}" -std=c++20 -O2 -DNDEBUG -Inative benchmarks/fork_cost.cpp -o build/fork_cost
library=${LIBRARY:-build/editable/native/libhmalloc-preload.so}
for ((i = 0; i < ${PAIRS:-9}; ++i)); do
  echo "glibc $(build/fork_cost 400)"
  echo "near $(LD_PRELOAD=$PWD/$library build/fork_cost 400)"
  echo "shm $(LD_PRELOAD=$PWD/$library NEARFAR_HMALLOC_DEFAULT=far \
    NEARFAR_HMALLOC_FAR=shm:,capacity=2GiB build/fork_cost 400)"
done | awk '
  function row(name, list, n, i, j, t, v) {
    n = split(list, v, " ")
    for (i = 2; i <= n; ++i)
      for (j = i; j > 1 && v[j - 1] + 0 > v[j] + 0; --j) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
    printf "%-28s %s [%s, %s]\n", name, v[int((n + 1) / 2)], v[1], v[n]
  }
  { forks[$1] = forks[$1] " " $2 }
  $1 == "glibc" { glibc = $2 }
  $1 == "shm" {
    copies = copies " " $3
    bound = bound " " sprintf("%.2f", $2 / $3)
    of_glibc = of_glibc " " sprintf("%.2f", $2 / glibc)
  }
  END {
    row("glibc, ms", forks["glibc"])
    row("near, ms", forks["near"])
    row("shm, ms", forks["shm"])
    row("copy, ms", copies)
    row("shm / glibc", of_glibc)
    row("shm / copy", bound)
  }'
