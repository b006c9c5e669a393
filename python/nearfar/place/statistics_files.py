"""The statistics that libhmalloc writes when a process ends, as documented in hmalloc(3).

Lines of ``key value``: ``hmalloc-stats 1``, ``process N``, ``tier.NAME.KEY N``,
``thread.NUMBER.name NAME`` and ``thread.NUMBER.NAME.KEY N``; ``rule.NUMBER.tier NAME`` and
``rule.NUMBER.memory WHAT`` and ``rule.NUMBER.KEY N`` where rules were counted.
"""

from __future__ import annotations

from pathlib import Path
from typing import cast

from nearfar.records.choices import RuleMemory
from nearfar.records.run_statistics import ProcessStatistics, RuleStatistics, ThreadStatistics

_HEAD = "hmalloc-stats 1"


def read_statistics(folder: Path, program: int) -> list[ProcessStatistics]:
    """Read the statistics in a folder, one file a process; the program's own first."""
    found = [parse_statistics(file.read_text()) for file in sorted(folder.iterdir())]
    whole = [process for process in found if process is not None]
    return sorted(whole, key=lambda process: (process.process != program, process.process))


def parse_statistics(text: str) -> ProcessStatistics | None:
    """Parse the statistics of one process; None if they are incomplete."""
    lines = text.splitlines()
    if len(lines) < 2 or lines[0] != _HEAD or not text.endswith("\n"):
        return None
    process = ProcessStatistics(process=0)
    threads: dict[str, ThreadStatistics] = {}
    for line in lines[1:]:
        key, _, value = line.partition(" ")
        match key.split("."):
            case ["process"]:
                process.process = int(value)
            case ["tier", tier, count]:
                process.tiers.setdefault(tier, {})[count] = int(value)
            case ["thread", number, "name"]:
                threads[number] = ThreadStatistics(thread=int(number), name=value)
            case ["rule", number, "tier"]:
                process.rules[int(number)] = RuleStatistics(tier=value)
            case ["rule", number, "memory"] if int(number) in process.rules:
                process.rules[int(number)].memory = cast("RuleMemory", value)
            case ["rule", number, count] if int(number) in process.rules:
                process.rules[int(number)].counts[count] = int(value)
            case ["thread", number, tier, count] if number in threads:
                threads[number].tiers.setdefault(tier, {})[count] = int(value)
    process.threads = list(threads.values())
    return process
