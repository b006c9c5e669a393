"""The Seoul thesis' four programs under `nearfar advise`: what it keeps near, and what was by hand.

    .venv/bin/python benchmarks/advise_thesis.py

Host, near and far memory are the thesis' (2 MB of L2, DRAM, PCM in ns); sizes are such that the
arrays leave the L2. Near memory is as large as the arrays that the thesis put near by hand: sorted
array, merge buffer, cells, matrices. Each program also holds its input, which is read once.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
BUILD = ROOT / "build" / "advise"
#: Arguments, and bytes of the arrays that were put near by hand.
PROGRAMS = {
    "quick": (1 << 20, [4 << 20]),
    "merge": (1 << 19, [2 << 20] * 2),
    "lbm": (24, [24**3 * 19 * 8] * 2),
    "matmul": (360, [360 * 360 * 8] * 3),
}


def main() -> None:
    """Prints a row a program."""
    BUILD.mkdir(parents=True, exist_ok=True)
    program = BUILD / "thesis"
    source = ROOT / "tests" / "programs" / "thesis.c"
    subprocess.run(["cc", "-O2", "-g", "-o", str(program), str(source)], check=True)
    print(
        "| program | arrays near by hand | kept near by advise | all far | heap far | plan | "
        "energy, all far | plan |\n|---|---|---|---|---|---|---|---|"
    )
    for name, (n, arrays) in PROGRAMS.items():
        found = _advice([str(program), name, str(n)], sum(arrays))
        near = sorted(
            site["size_bytes"]
            for site in found["sites"]
            if site["verdict"] == "near" and site["size_bytes"] > 1 << 16
        )
        print(
            f"| {name} {n} | {sorted(arrays)} | {near} | {found['slowdown_all_far']:.2f} | "
            f"{found['slowdown_movable_far']:.2f} | {found['slowdown_plan']:.2f} | "
            f"{found['energy_all_far_J']:.3g} J | {found['energy_plan_J']:.3g} J |"
        )


def _advice(command: list[str], budget: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(dir=BUILD) as folder:
        answer = Path(folder) / "answer.json"
        subprocess.run(
            [
                str(ROOT / "nearfar"),
                "advise",
                "--emulate",
                "-q",
                "--host",
                "snu-2014",
                "--near",
                "dram-snu",
                "--far",
                "pcm-snu-ns",
                "--near-budget",
                f"{budget}B",
                "--json",
                str(answer),
                "--",
                *command,
            ],
            cwd=folder,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        found: dict[str, Any] = json.loads(answer.read_text())
    return found


if __name__ == "__main__":
    main()
