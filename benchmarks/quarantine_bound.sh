#!/bin/bash
# Instructions that a pair of free and malloc takes: bare, for a program that keeps freed blocks in two
# arrays of 512, and with a quarantine of 1 MiB, which keeps as many. Counts do not depend on other
# load, as times do. Requires valgrind. LIBRARY: another build of the preload library.
set -eu
cd "$(dirname "$0")/.."
mkdir -p build
cc -O2 benchmarks/reference/delayed_free.c -o build/delayed_free
library=$PWD/${LIBRARY:-build/editable/native/libhmalloc-preload.so}
# instructions KEPT PAIRS: of the whole program
instructions() {
  LD_PRELOAD=$library valgrind --tool=callgrind --callgrind-out-file=/dev/null \
    build/delayed_free "$1" "$2" 2>&1 | awk '/Collected/ { print $4 }'
}
row() {
  local few many pairs=100000
  few=$(instructions "$2" $pairs)
  many=$(instructions "$2" $((3 * pairs)))
  awk -v name="$1" -v n="$((many - few))" -v pairs="$((2 * pairs))" \
    'BEGIN { printf "%-26s %.1f\n", name, n / pairs }'
}
row bare 0
row "two arrays of 512 blocks" 512
export NEARFAR_HMALLOC_HARDEN=quarantine=1MiB
row "quarantine of 1 MiB" 0
