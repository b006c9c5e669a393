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


def main() -> None:
    everyone = sorted(os.sched_getaffinity(0))
    for cpus in (everyone[:1], everyone):
        threads = f"{len(cpus)} thread{'s' * (len(cpus) > 1)}"
        stream = ArrayBench("dram", "dram", "dram", BYTES // 8, cpus)

        def copy(stream: ArrayBench = stream, cpus: list[int] = cpus) -> dict[str, float]:
            r = stream.repeat("copy", cpus)
            return {"bytes/s": r["counted_bytes"] / r["seconds"]}

        for columns in (8192, 1024):
            rows = BYTES // 8 // columns
            bench = StencilBench(rows, columns, 0, "direct", "dram", "dram", cpus, [], 1)

            def sweep(bench: StencilBench = bench) -> dict[str, float]:
                return {"bytes/s": 2 * BYTES / (fmean(bench.run(SWEEPS)["near_ns"]) * 1e-9)}

            interleave(sweep, copy, f"stencil, rows of {columns}, {threads}")
        compete = CompeteBench("far-far", "dram", "dram", ARRAY // 8, cpus, [])

        def copies(compete: CompeteBench = compete) -> dict[str, float]:
            return {"bytes/s": compete.run(12)["near_bytes_per_s"]}

        interleave(copies, copy, f"compete's copy, {threads}")


if __name__ == "__main__":
    main()
