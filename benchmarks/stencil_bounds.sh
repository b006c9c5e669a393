#!/bin/bash
# Builds benchmarks/stencil_bounds.cpp for this processor, and runs it on one CPU.
set -eu
cd "$(dirname "$0")/.."
cmake --build build/editable --target nearfar_kernels nearfar_os >/dev/null
"${CXX:-g++}" -std=c++20 -O3 -march=native -Inative benchmarks/stencil_bounds.cpp \
  build/editable/native/libnearfar_kernels.a build/editable/native/libnearfar_os.a -o build/stencil_bounds
[ "${1:-}" = --build ] || exec taskset -c 0 build/stencil_bounds
