#!/bin/bash
# Objects a second that the inspector looks at, in a pool that libpmemobj filled.
# Usage: pool_objects.sh [OBJECTS] [BYTES]   (a folder in memory of OBJECTS x (BYTES + 16) and more)
set -eu
cd "$(dirname "$0")/.."
objects=${1:-10000000} bytes=${2:-48}
folder=$(mktemp -d -p /dev/shm)
trap 'rm -rf "$folder"' EXIT
gcc -O2 -o "$folder/fill" benchmarks/reference/pool_fill.c -lpmemobj
PMEM_IS_PMEM_FORCE=1 "$folder/fill" "$folder/pool" $((objects * (bytes + 96) / 900000 + 64)) "$objects" "$bytes"
.venv/bin/python - "$folder/pool" <<'PYTHON'
import sys, time
from nearfar import _native

for what, look in (("check, info", _native.pool_examine), ("leaks", _native.pool_leaks)):
    rates = []
    for _ in range(7):
        start = time.perf_counter()
        facts = look(sys.argv[1])
        taken = time.perf_counter() - start
        count = facts["all_objects"]["objects"] if "all_objects" in facts else facts["objects"]
        rates.append(count / taken)
    rates.sort()
    print(f"{what}: {count} objects, {rates[3] / 1e6:.1f} M objects/s "
          f"[{rates[0] / 1e6:.1f}, {rates[-1] / 1e6:.1f}] (median, range of 7)")
PYTHON
