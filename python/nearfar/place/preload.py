"""libhmalloc preloaded: which environment tells it what to do, and whether it will do it.

The library itself reads tiers and plans (hmalloc(3)), and says what is wrong with them; here it is
started once in a small program of ours, so that this is known before anybody's program starts.
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
from nearfar.measure.beside import BESIDE

LIBRARY = BESIDE / "libhmalloc-preload.so"

_OURS = ("HMALLOC_PLAN", "HMALLOC_DEFAULT")
#: How the library ends a process whose settings make no sense, or cannot be had here.
_BAD_SETTING, _NOT_HERE = 2, 3
_NO_TIER = re.compile(r"there is no tier '?([A-Za-z0-9_-]+)")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,31}")


@dataclass(frozen=True)
class Placement:
    """A plan file, or none; and tiers by name, as they are written after ``--tier``."""

    plan: Path | None
    tiers: Mapping[str, str]

    def heap(self) -> str | None:
        """Without a plan, the tier of the whole heap: the one that is not near, if there is one.

        Raises BadInputError where nothing says what goes where.
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
    """``far=numa:1`` and so on, by name. Raises BadInputError."""
    tiers: dict[str, str] = {}
    for text in texts:
        name, equals, specification = text.partition("=")
        if not equals or not specification or not _NAME.fullmatch(name) or ";" in specification:
            raise BadInputError(f"'{text}' is no NAME=TIER", "write it like far=numa:1")
        if name in tiers:
            raise BadInputError(f"tier {name} is told twice", "name each tier once")
        tiers[name] = specification
    return tiers


def environment(
    placement: Placement, statistics: Path | None, *, rules: bool = False
) -> dict[str, str]:
    """Variables for a program under a placement; ``statistics``: a folder for its accounts, with
    what each rule of the plan placed where ``rules``.

    Libraries that are to be preloaded anyway stay so, after ours. Raises BadInputError.
    """
    ours = {key: value for key, value in os.environ.items() if key not in _OURS}
    others = [library for library in ours.get("LD_PRELOAD", "").split(":") if library]
    ours["LD_PRELOAD"] = ":".join([str(LIBRARY), *others])
    further = []
    for name, specification in placement.tiers.items():
        if name in ("near", "far"):
            ours[f"HMALLOC_{name.upper()}"] = specification
        else:
            further.append(f"{name}={specification}")
    if further:
        ours["HMALLOC_TIERS"] = ";".join(further)
    heap = placement.heap()
    if heap:
        ours["HMALLOC_DEFAULT"] = heap
    if placement.plan:
        ours["HMALLOC_PLAN"] = str(placement.plan.resolve())
    if statistics:
        ours["HMALLOC_STATS"] = "exit,rules" if rules else "exit"
        ours["HMALLOC_STATS_FILE"] = str(statistics / "%p")
    return ours


def check(ours: Mapping[str, str]) -> None:
    """Start the library once with these variables.

    Raises BadInputError for a plan or a tier that makes no sense, MachineError for one that cannot
    be had here.
    """
    quiet = {key: value for key, value in ours.items() if not key.startswith("HMALLOC_STATS")}
    done = subprocess.run(
        test_command("preload", "small", count=1, seed=1, cpus=one_cpu(), settle_s=0.0),
        env=quiet, capture_output=True, text=True, check=False,
    )  # fmt: skip
    told = "; ".join(line.removeprefix("libhmalloc: ") for line in done.stderr.splitlines())
    if done.returncode == _BAD_SETTING:
        absent = _NO_TIER.search(told)
        raise BadInputError(
            told,
            f"name it: --tier {absent[1]}=TIER, such as {absent[1]}=numa:1"
            if absent
            else "docs/hmalloc.md tells how plans and tiers are written",
        )
    if done.returncode != 0:
        raise MachineError(
            told or done.stdout.replace("\n", "; "),
            "`nearfar topo` tells which tiers there are, docs/hmalloc.md how they are written",
        )
