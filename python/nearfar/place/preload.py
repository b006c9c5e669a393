"""Preload libhmalloc: build its environment variables, and check them before a program starts.

The library itself parses tiers and plans (hmalloc(3)) and reports errors; it is loaded once into a
small helper program, so that errors are known before the user's program starts.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nearfar.errors import BadInputError, MachineError
from nearfar.measure.allocators import one_cpu, test_command
from nearfar.process.helpers import preloadable

#: Replaces malloc and related functions of a program.
LIBRARY = "libhmalloc-preload.so"

_OURS = ("NEARFAR_HMALLOC_PLAN", "NEARFAR_HMALLOC_DEFAULT")
#: Exit codes of the library for invalid settings, and for settings unsupported on this machine.
_BAD_SETTING, _NOT_HERE = 2, 3
_NO_TIER = re.compile(r"no such tier '([A-Za-z0-9_-]+)")
_VARIABLE = re.compile(r"(?P<name>NEARFAR_HMALLOC_(?P<what>PLAN|NEAR|FAR|TIERS|DEFAULT)): ")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,31}")


@dataclass(frozen=True)
class Placement:
    """A plan file, or none; and tiers by name, in the format of ``--tier``."""

    plan: Path | None
    tiers: Mapping[str, str]

    def heap(self) -> str | None:
        """The tier of the whole heap without a plan: the only one other than near, if any.

        Raises BadInputError if the tier is ambiguous.
        """
        if self.plan:
            return None
        others = [name for name in self.tiers if name != "near"] or list(self.tiers)
        if len(others) != 1:
            raise BadInputError(
                "without a plan the whole heap goes to one tier, and "
                f"{len(others) or 'none'} are named",
                "give --plan FILE, or one tier: --tier far=numa:1",
            )
        return others[0]


def parse_tiers(texts: Sequence[str]) -> dict[str, str]:
    """Parse ``far=numa:1`` and so on, by name. Raises BadInputError."""
    tiers: dict[str, str] = {}
    for text in texts:
        name, equals, specification = text.partition("=")
        if not equals or not specification or not _NAME.fullmatch(name) or ";" in specification:
            raise BadInputError(f"'{text}' is not NAME=TIER", "write it like far=numa:1")
        if name in tiers:
            raise BadInputError(f"tier {name} is given twice", "name each tier once")
        tiers[name] = specification
    return tiers


def environment(
    placement: Placement, statistics: Path | None, *, rules: bool = False
) -> dict[str, str]:
    """Variables for a program under a placement; ``statistics``: a folder for its files, with
    the counts of each rule if ``rules``.

    Libraries in LD_PRELOAD are kept, after libhmalloc. Raises BadInputError.
    """
    ours = {key: value for key, value in os.environ.items() if key not in _OURS}
    others = [library for library in ours.get("LD_PRELOAD", "").split(":") if library]
    ours["LD_PRELOAD"] = ":".join([preloadable(LIBRARY), *others])
    further = []
    for name, specification in placement.tiers.items():
        if name in ("near", "far"):
            ours[f"NEARFAR_HMALLOC_{name.upper()}"] = specification
        else:
            further.append(f"{name}={specification}")
    if further:
        ours["NEARFAR_HMALLOC_TIERS"] = ";".join(further)
    heap = placement.heap()
    if heap:
        ours["NEARFAR_HMALLOC_DEFAULT"] = heap
    if placement.plan:
        ours["NEARFAR_HMALLOC_PLAN"] = str(placement.plan.resolve())
    if statistics:
        ours["NEARFAR_HMALLOC_STATS"] = "exit,rules" if rules else "exit"
        ours["NEARFAR_HMALLOC_STATS_FILE"] = str(statistics / "%p")
    return ours


def _in_flags(complaint: str, ours: Mapping[str, str]) -> str:
    """A message of the library that names the flag of a setting, not the variable made of it."""
    found = _VARIABLE.match(complaint)
    if found is None or ours.get(found["name"]) == os.environ.get(found["name"]):
        return complaint  # the user set it
    rest = complaint[found.end() :].replace("NEARFAR_HMALLOC_FAR", "--tier far=TIER")
    if found["what"] == "PLAN":
        return f"plan {rest}"
    tier, value = found["what"].lower(), ours[found["name"]]
    named = f"{tier}={value}" if tier in ("near", "far") else value.replace(";", " --tier ")
    return f"--tier {named}: {rest}"


def check(ours: Mapping[str, str]) -> None:
    """Load the library once with these variables.

    Raises BadInputError for an invalid plan or tier, MachineError for one that this machine does
    not support.
    """
    quiet = {
        key: value for key, value in ours.items() if not key.startswith("NEARFAR_HMALLOC_STATS")
    }
    done = subprocess.run(
        test_command("preload", "small", count=1, seed=1, cpus=one_cpu(), settle_s=0.0),
        env=quiet,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    lines = [line.removeprefix("libhmalloc: ") for line in done.stderr.splitlines()]
    complaint = "; ".join(_in_flags(line, ours) for line in lines)
    if done.returncode == _BAD_SETTING:
        absent = _NO_TIER.search(complaint)
        raise BadInputError(
            complaint,
            f"name it: --tier {absent[1]}=TIER, such as {absent[1]}=numa:1"
            if absent
            else "see docs/how-to/hmalloc.md for the syntax of plans and tiers",
        )
    if done.returncode != 0:
        raise MachineError(
            complaint or done.stdout.replace("\n", "; "),
            "list the tiers with `nearfar topo`; see docs/how-to/hmalloc.md for their syntax",
        )
