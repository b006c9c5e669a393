"""First touches: what `nearfar advise` predicts of a sparse program, and what it then takes.

    .venv/bin/python benchmarks/sparse.py [REPEATS]

A program allocates 4 GiB and touches 1,024 pages of it, one in each second large page. Near memory
is DRAM on huge pages, far memory the same on small ones. Slowdowns are of CPU time: lower quartiles
of interleaved runs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import quantiles

from nearfar.place.preload import Placement, environment

HERE = Path(__file__).parent
TIERS = {"near": "dram,pages=thp", "far": "dram,pages=4k"}
SOURCE = """#include <stdlib.h>
int main(void) {
  size_t bytes = (size_t)4 << 30, pages = 1024;
  volatile char* p = malloc(bytes);
  if (!p) return 1;
  for (int round = 0; round < 2; ++round)
    for (size_t i = 0; i < pages; ++i) p[i * (bytes / pages)] += 1;
  return 0;
}
"""


def cpu_s(program: str, variables: dict[str, str]) -> float:
    child = subprocess.Popen([program], env=variables)
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        raise SystemExit(f"{program} ended with status {status}")
    return usage.ru_utime + usage.ru_stime


def predicted(program: str, folder: str) -> dict[str, object]:
    subprocess.run(
        [
            HERE.parent / "nearfar",
            "advise",
            "-q",
            "--near",
            TIERS["near"],
            "--far",
            TIERS["far"],
            "--out",
            f"{folder}/advice",
            "--json",
            f"{folder}/advice.json",
            "--",
            program,
        ],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    advice = json.loads(Path(folder, "advice.json").read_text())
    return {
        "slowdown": advice["slowdown_movable_far"],
        "cpu_near_s": advice["cpu_near_s"],
        "interval": advice["intervals"]["slowdown_movable_far"],
    }


def main(repeats: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/sparse"
        Path(f"{program}.c").write_text(SOURCE)
        subprocess.run(["cc", "-O1", "-o", program, f"{program}.c"], check=True)
        print("predicted", predicted(program, folder), flush=True)
        taken: dict[str, list[float]] = {name: [] for name in TIERS}
        for i in range(repeats):
            for name in sorted(TIERS, reverse=bool(i % 2)):
                variables = environment(Placement(None, {name: TIERS[name]}), None)
                taken[name].append(cpu_s(program, variables))
    quarters = {name: quantiles(times, n=4) for name, times in taken.items()}
    for name, (low, middle, high) in quarters.items():
        print(
            f"{name} {low:.4f} s, median {middle:.4f}, upper quartile {high:.4f}, "
            f"range {min(taken[name]):.4f} to {max(taken[name]):.4f}"
        )
    print("measured", quarters["far"][0] / quarters["near"][0])


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 11)
