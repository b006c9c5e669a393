"""Sampled plans judged by the emulator, for programs that were not written here.

Usage: sampled_plans.py PROGRAMS.json [NAME...]

PROGRAMS.json has a command, a list of words, by name. Each program is advised twice for a CXL
expander: by the emulator, at the knee of its curve, and from samples with the same near budget. The
gain of a plan is the time that the emulator says its near sites would lose in far memory; of a site
on both memories, that of its near fraction. Prints a line of JSON for each program: both slowdowns
with intervals, both gains, the budget.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_ADVISE = (str(Path(__file__).parent.parent / "nearfar"), "advise", "--far", "cxl-asic")

Site = dict[str, Any]


def advised(command: Sequence[str], *flags: str) -> dict[str, Any]:
    """The JSON of a piece of advice."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "advice.json"
        subprocess.run(
            [*_ADVISE, *flags, "--json", str(file), "--out", f"{folder}/run", "--", *command],
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        found: dict[str, Any] = json.loads(file.read_text())
        return found


def same(one: Site, other: Site) -> bool:
    """Whether two answers mean the same site: by its call chain as far as both have it, else by its
    name."""
    if one["kind"] != other["kind"]:
        return False
    frames = min(len(one["chain"]), len(other["chain"]))
    if not frames:
        return bool(one["at"] == other["at"])
    return bool(one["chain"][:frames] == other["chain"][:frames])


def gain_s(emulated: dict[str, Any], plan: dict[str, Any]) -> float:
    """Time that the emulator says the near sites of a plan would lose in far memory."""
    return sum(
        float(site["far_time_s"])
        * max((near_fraction(kept) for kept in plan["sites"] if same(site, kept)), default=0.0)
        for site in emulated["sites"]
    )


def near_fraction(site: Site) -> float:
    """Fraction of a site that a plan keeps near."""
    if site["verdict"] == "interleaved":
        return float(site["near_share"])
    return float(site["verdict"] == "near")


def judged(name: str, command: Sequence[str]) -> dict[str, Any]:
    """Both answers for a program."""
    emulated = advised(command, "--emulate")
    budget = max(int(emulated["near_bytes"]), 1 << 20)
    sampled = advised(command, "--near-budget", str(budget))
    best, reached = gain_s(emulated, emulated), gain_s(emulated, sampled)

    def slowdown(found: dict[str, Any]) -> list[float]:
        return [found["slowdown_all_far"], *found["intervals"]["slowdown_all_far"]]

    return {
        "program": name,
        "sampled": slowdown(sampled),
        "emulated": slowdown(emulated),
        "budget_bytes": budget,
        "gain_emulated_s": best,
        "gain_sampled_s": reached,
        "share": reached / best if best else None,
        "cpu_s": sampled["cpu_near_s"],
        "load": os.getloadavg()[0],
    }


def main(arguments: Sequence[str]) -> None:
    """Judge the named programs, or all."""
    programs: dict[str, list[str]] = json.loads(Path(arguments[0]).read_text())
    for name in arguments[1:] or programs:
        print(json.dumps(judged(name, programs[name])), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
