"""The mutation suite over our own structures, and how fast images are explored.

``.venv/bin/python benchmarks/crash.py``: for each structure, a mix of 400 operations is explored
with nothing taken away; then each line that flushes, fences or logs is taken away in turn. A
mutant counts as found if a violation is seen, as named if a finding blames a store that the call
was there for.
"""

from __future__ import annotations

from nearfar.verify.explorer import call_sites, explore

STRUCTURES = ("map", "list", "skip_list", "queue")
TRACE = {"n": 400, "seed": 1}


def main() -> None:
    print("| structure | images | left | violations | images/s | mutants | found | named |")
    print("|---|---|---|---|---|---|---|---|")
    for structure in STRUCTURES:
        trace = {"structure": structure, **TRACE}
        whole = explore("check", trace)
        rates = sorted(explore("check", trace).states_per_s for _ in range(9))
        sites = call_sites(trace)
        found = named = 0
        for kind, site, stores in sites:
            file, _, line = site.rpartition(":")
            asked = {**trace, "violations": 20, "budget": 50_000}
            result = explore("check", {**asked, "suppress": f"{kind} {line} {file}"})
            is_named = any(finding.store in stores for finding in result.findings)
            found += result.violations > 0
            named += is_named
            if not is_named:
                blamed = sorted({finding.store for finding in result.findings})
                print(f"<!-- {structure}: {kind} of {site}: {blamed or 'not found'} -->")
        print(
            f"| {structure} | {whole.states} | {whole.states_left:.0f} | {whole.violations} "
            f"| {rates[4]:,.0f} [{rates[0]:,.0f}, {rates[-1]:,.0f}] "
            f"| {len(sites)} | {found} | {named} |"
        )


if __name__ == "__main__":
    main()
