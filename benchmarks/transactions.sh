#!/bin/bash
# Builds benchmarks/transactions.cpp with the flags of the shipped core, and runs it (shm:, so DRAM
# stands in for persistent memory).
set -eu
cd "$(dirname "$0")/.."
cmake -S . -B build/library -G Ninja -DNEARFAR_PYTHON=OFF >/dev/null
cmake --build build/library --target nearfar >/dev/null
"${CXX:-g++}" -std=c++20 -O3 -DNDEBUG -march=x86-64-v2 -Iinclude -Inative benchmarks/transactions.cpp \
  -Lbuild/library/native -lnearfar $(pkg-config --libs libpmemobj libpmem) \
  $(pkg-config --exists liburing && pkg-config --libs liburing) -pthread -o build/transactions
[ "${1:-}" = --build ] || exec build/transactions
