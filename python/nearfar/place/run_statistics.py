"""The statistics that libhmalloc writes when a process ends, as documented in hmalloc(3).

Lines of ``key value``: ``hmalloc-stats 1``, ``process N``, ``tier.NAME.KEY N``,
``thread.NUMBER.name NAME`` and ``thread.NUMBER.NAME.KEY N``; ``rule.NUMBER.tier NAME`` and
``rule.NUMBER.memory WHAT`` and ``rule.NUMBER.KEY N`` where rules were counted.
"""

from __future__ import annotations

from pathlib import Path
from typing import cast

from pydantic import BaseModel, ConfigDict, Field

from nearfar.records.choices import RuleMemory
from nearfar.records.placement import PlacementResult
from nearfar.records.plan_check import Check

_HEAD = "hmalloc-stats 1"


class Thread(BaseModel):
    """A thread that was alive at the end; counts by tier."""

    model_config = ConfigDict(extra="forbid")

    thread: int
    name: str = ""
    tiers: dict[str, dict[str, int]] = Field(default_factory=dict)


class Rule(BaseModel):
    """What a rule of the plan placed; ``nodeN`` counts sampled pages on NUMA node N."""

    model_config = ConfigDict(extra="forbid")

    tier: str
    memory: RuleMemory = "heap"
    counts: dict[str, int] = Field(default_factory=dict)


class Process(BaseModel):
    """Counts by tier in the format of ``hm_tier_stats``, including ended threads."""

    model_config = ConfigDict(extra="forbid")

    process: int
    tiers: dict[str, dict[str, int]] = Field(default_factory=dict)
    threads: list[Thread] = Field(default_factory=list)
    rules: dict[int, Rule] = Field(default_factory=dict, description="by number, from 1; --check")


class RunStatistics(BaseModel):
    """The output of ``nearfar run --json``. Bytes are those of size classes; all are counts."""

    model_config = ConfigDict(extra="forbid")

    program: list[str]
    exit_code: int
    plan: str | None = None
    tiers: dict[str, str] = Field(default_factory=dict, description="as --tier gave them")
    processes: list[Process] = Field(
        default_factory=list,
        description="that ended by exit() or a return of main, the program itself first",
    )
    check: Check | None = Field(default=None, description="what the plan promised; --check")
    placement: PlacementResult | None = Field(
        default=None, description="pages moved from outside: no library can be preloaded"
    )


def read(folder: Path, program: int) -> list[Process]:
    """Read the statistics in a folder, one file a process; the program's own first."""
    found = [parse(file.read_text()) for file in sorted(folder.iterdir())]
    whole = [process for process in found if process is not None]
    return sorted(whole, key=lambda process: (process.process != program, process.process))


def parse(text: str) -> Process | None:
    """Parse the statistics of one process; None if they are incomplete."""
    lines = text.splitlines()
    if len(lines) < 2 or lines[0] != _HEAD or not text.endswith("\n"):
        return None
    process = Process(process=0)
    threads: dict[str, Thread] = {}
    for line in lines[1:]:
        key, _, value = line.partition(" ")
        match key.split("."):
            case ["process"]:
                process.process = int(value)
            case ["tier", tier, count]:
                process.tiers.setdefault(tier, {})[count] = int(value)
            case ["thread", number, "name"]:
                threads[number] = Thread(thread=int(number), name=value)
            case ["rule", number, "tier"]:
                process.rules[int(number)] = Rule(tier=value)
            case ["rule", number, "memory"] if int(number) in process.rules:
                process.rules[int(number)].memory = cast("RuleMemory", value)
            case ["rule", number, count] if int(number) in process.rules:
                process.rules[int(number)].counts[count] = int(value)
            case ["thread", number, tier, count] if number in threads:
                threads[number].tiers.setdefault(tier, {})[count] = int(value)
    process.threads = list(threads.values())
    return process
