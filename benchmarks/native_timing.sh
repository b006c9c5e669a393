#!/bin/bash
# Runs the native test cases that judge measured times. Run it on an idle machine, after `make test`.
set -eu
cd "$(dirname "$0")/.."
for layer in alloclog kernels probe; do
  "build/editable/native/${layer}_test" --no-skip --test-suite="idle machine"
done
