#!/bin/bash
# Builds benchmarks/cache_speed.cpp with the flags of the shipped core, and runs it.
set -eu
cd "$(dirname "$0")/.."
mkdir -p build
"${CXX:-g++}" -std=c++20 -O3 -DNDEBUG -march=x86-64-v2 -Inative \
  benchmarks/cache_speed.cpp native/cache/{cache,hierarchy,tlb}.cpp -o build/cache_speed
exec build/cache_speed
