"""Stencil and competing copies against the copy of `bench stream`, in interleaved pairs.

    .venv/bin/python benchmarks/together.py

Same tier, same threads, bytes moved counted: 16 an element on either side.
"""

from __future__ import annotations

import os
from statistics import fmean

from references import MIB, interleave

from nearfar._native import ArrayBench, CompeteBench, StencilBench

BYTES = 512 * MIB
ARRAY = 128 * MIB
SWEEPS = 3
#: Name, elements of a row or plane, and the width of a plane.
SHAPES = (
    ("stencil, rows of 8192", 8192, 0),
    ("stencil, rows of 1024", 1024, 0),
    ("seven points, planes of 128 x 128", 128 * 128, 128),
)


def main() -> None:
    everyone = sorted(os.sched_getaffinity(0))
    for cpus in (everyone[:1], everyone):
        threads = f"{len(cpus)} thread{'s' * (len(cpus) > 1)}"
        stream = ArrayBench("dram", "dram", "dram", BYTES // 8, cpus)

        def copy(stream: ArrayBench = stream, cpus: list[int] = cpus) -> dict[str, float]:
            r = stream.repeat("copy", cpus)
            return {"bytes/s": r["counted_bytes"] / r["seconds"]}

        for name, columns, width in SHAPES:
            rows = BYTES // 8 // columns
            bench = StencilBench(rows, columns, 0, "direct", "dram", "dram", cpus, [], 1, width)

            def sweep(bench: StencilBench = bench) -> dict[str, float]:
                return {"bytes/s": 2 * BYTES / (fmean(bench.run(SWEEPS)["near_ns"]) * 1e-9)}

            interleave(sweep, copy, f"{name}, {threads}")
            del bench, sweep  # its gigabyte, before the next
        compete = CompeteBench("far-far", "dram", "dram", ARRAY // 8, cpus, [])

        def copies(compete: CompeteBench = compete) -> dict[str, float]:
            return {"bytes/s": compete.run(12)["near_bytes_per_s"]}

        interleave(copies, copy, f"compete's copy, {threads}")


if __name__ == "__main__":
    main()
