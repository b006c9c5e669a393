"""The mutation suite over our own structures, and how fast images are explored.

``.venv/bin/python benchmarks/crash.py [speed|mutants]``: for each structure, a mix of operations is
explored with nothing taken away, nine times; of structures on libpmemobj also with every image
opened by it. Then each line that flushes, fences or logs is taken away in turn. A mutant counts as
found if a violation is seen, as named if a finding blames a store that the call was there for.
"""

from __future__ import annotations

import sys

from nearfar.verify.explorer import call_sites, explore
from nearfar.verify.findings import Exploration
from nearfar.verify.structures import ON_LIBPMEMOBJ, check

OURS = {"map": 400, "list": 400, "skip_list": 400, "queue": 400, "move": 200}
ROUNDS = 9
LIBRARY_BUDGET = 2000


def speed() -> None:
    """Images a second, median and range of the rounds."""
    print("| structure | operations | images | left | violations | by libpmemobj | images/s |")
    print("|---|---|---|---|---|---|---|")
    for structure, n in OURS.items():
        _row(structure, n, [explore("check", _trace(structure, n)) for _ in range(ROUNDS)])
    for structure in ON_LIBPMEMOBJ:
        budget = {"budget": 40_000}
        trace = {**_trace(structure, 200), **budget}
        _row(structure, 200, [check({**trace, "confirm_every": 100}) for _ in range(5)])
        trace = {**_trace(structure, 200), "budget": LIBRARY_BUDGET}
        _row(structure, 200, [check({**trace, "confirm_every": 1}) for _ in range(3)])


def _trace(structure: str, n: int) -> dict[str, object]:
    return {"structure": structure, "n": n, "seed": 1}


def _row(structure: str, n: int, runs: list[Exploration]) -> None:
    rates = sorted(run.states_per_s for run in runs)
    middle, one = rates[len(rates) // 2], runs[0]
    print(
        f"| {structure} | {n} | {one.states} | {one.states_left:.3g} | {one.violations} "
        f"| {one.confirmed} | {middle:,.0f} [{rates[0]:,.0f}, {rates[-1]:,.0f}] |",
        flush=True,
    )


def mutants() -> None:
    """Each call taken away, of traces of 200 operations."""
    print("| structure | mutants | found | named |")
    print("|---|---|---|---|")
    for structure in OURS:
        trace = _trace(structure, 200)
        sites = call_sites(trace)
        found = named = 0
        for kind, site, stores in sites:
            file, _, line = site.rpartition(":")
            asked = {**trace, "violations": 20, "budget": 60_000}
            result = explore("check", {**asked, "suppress": f"{kind} {line} {file}"})
            is_named = any(finding.store in stores for finding in result.findings)
            found += result.violations > 0
            named += is_named
            if not is_named:
                blamed = sorted({finding.store for finding in result.findings})
                print(f"<!-- {structure}: {kind} of {site}: {blamed or 'not found'} -->")
        print(f"| {structure} | {len(sites)} | {found} | {named} |", flush=True)


if __name__ == "__main__":
    wanted = sys.argv[1:] or ["speed", "mutants"]
    if "speed" in wanted:
        speed()
    if "mutants" in wanted:
        mutants()
