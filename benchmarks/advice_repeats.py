"""Repeated advice on one machine: do two answers differ by less than their intervals?

Usage: advice_repeats.py PROGRAMS.json REPEATS FAR

PROGRAMS.json has a command, a list of words, by name. The programs are advised on in turns, all on
the host that is stored. For each one the answers, their largest difference, the narrowest half
interval, and the time of an answer less that of the program are printed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

_ADVISE = (str(Path(__file__).parent.parent / "nearfar"), "advise", "--quiet")


def answer(command: list[str], far: str) -> tuple[dict[str, Any], float]:
    """The JSON of an answer, and its time in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "advice.json"
        begin = time.monotonic()
        subprocess.run(
            [*_ADVISE, "--far", far, "--json", str(file), "--out", f"{folder}/run", "--", *command],
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        return json.loads(file.read_text()), time.monotonic() - begin


def show(name: str, answers: list[tuple[dict[str, Any], float]]) -> bool:
    """Print a program's answers. Returns whether no two differ by more than an interval's half."""
    values: list[float] = [found["slowdown_all_far"] for found, _ in answers]
    ends: list[tuple[float, float]] = [
        found["intervals"]["slowdown_all_far"] for found, _ in answers
    ]
    apart = max(values) - min(values)
    half = min((high - low) / 2 for low, high in ends)
    seconds = [took for _, took in answers]
    disturbed = sum(found["run_disturbed"] for found, _ in answers)
    print(
        f"{name:12} {' '.join(f'{value:.3f}' for value in values)}  apart {apart:.3f}, half "
        f"interval {half:.3f}: {'holds' if apart <= half else 'DOES NOT HOLD'}; program "
        f"{answers[0][0]['cpu_near_s']:.2f} s CPU, answer {min(seconds):.1f} to {max(seconds):.1f} "
        f"s; {disturbed} of {len(answers)} disturbed",
        flush=True,
    )
    return apart <= half


def main() -> None:
    """Advise in turns."""
    programs, repeats, far = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    commands = json.loads(programs.read_text())
    found: dict[str, list[tuple[dict[str, Any], float]]] = {name: [] for name in commands}
    for _ in range(repeats):
        for name, command in commands.items():
            found[name].append(answer(command, far))
    held = sum(show(name, answers) for name, answers in found.items())
    print(f"{held} of {len(found)} hold")


if __name__ == "__main__":
    main()
