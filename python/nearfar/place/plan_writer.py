"""Plan files as `nearfar advise` writes them (docs/formats/plan.md), with their promise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nearfar import __version__
from nearfar.place.fractions import NearParts
from nearfar.place.memory_names import ANONYMOUS, part_name, region_name
from nearfar.place.promise import PlanPromise, Promise, RulePromise
from nearfar.place.rules import Rule, rules_for
from nearfar.place.sites import Site
from nearfar.units import format_size

#: Comment in the plan above the promise.
_CHECKED_BY = "# `nearfar run --check` holds a run against these lines:"
_PLACED_BY = "# `nearfar place --pid` moves the pages of these regions, as they were observed:"
#: Comment above tiers of several nodes.
_MIXED = (
    "# sites on both memories; other nodes: edit the line, or `--tier NAME=numa:A+B,weights=N:M`"
)


def plan_text(
    sites: Sequence[Site],
    placing: NearParts,
    gains: Mapping[int, float],
    whole: PlanPromise,
    labels: Mapping[int, str],
    program: Sequence[str],
    *,
    attached: bool = False,
) -> str:
    """A plan that places each movable site near, far, or in fractions on both.

    ``attached``: made from a process that was running. ``labels`` are the names of sites. Blocks of
    sites that the run did not show are placed far if a budget was given, otherwise near; a plan
    without call sites does not place blocks.
    """
    rules = rules_for(sites, placing, gains)
    bounded = whole.near_budget_bytes is not None
    promise = Promise(
        whole=whole,
        rules=[
            _promised(number, rule, gains, labels, counted=whole.caches is not None)
            for number, rule in enumerate(rules, start=1)
        ],
    )
    lines = [
        "hmalloc-plan 1",
        f"# by nearfar advise {__version__} for: {' '.join(program)}".replace("\n", " "),
        f"# near: {format_size(whole.near_bytes)} of {format_size(whole.peak_bytes)}; "
        f"slowdown {whole.slowdown:.3g}, all far {whole.slowdown_all_far:.3g}",
        _PLACED_BY if attached else _CHECKED_BY,
        *promise.lines(),
    ]
    if mixed := placing.tier_lines():
        lines += [_MIXED, *mixed]
    deepest = max((len(rule.name.chain) for rule in rules), default=1)
    if deepest > 1:
        lines.append("unwind frame-pointers")
    for rule, promised in zip(rules, promise.rules, strict=True):
        lines += [
            f"# {promised.at}",
            f"rule {rule.tier} {rule.name.condition()}{_budget(rule, promised, whole)}",
        ]
    if any(rule.name.keyword == "site" for rule in rules):
        lines += ["# what this run did not show", f"rule {'far' if bounded else 'near'}"]
    return "\n".join(lines) + "\n"


def _at(rule: Rule, labels: Mapping[int, str]) -> str:
    """The name of a rule's sites, on one line; with the sizes that the rule takes, if they are
    others."""
    label = "".join(c if c.isprintable() else "?" for c in labels.get(rule.sites[0].number, ""))
    if " size=" not in rule.name.keyword:
        return label
    taken = region_name(rule.name.keyword) + part_name(rule.name.part)
    return label if taken == label else f"{label} (rule: {taken.removeprefix(ANONYMOUS)})"


def _budget(rule: Rule, promised: RulePromise, whole: PlanPromise) -> str:
    """The budget of a near rule for blocks: with another input it may grow by the unused budget."""
    if whole.near_budget_bytes is None or rule.tier != "near" or rule.name.keyword != "site":
        return ""
    left = max(whole.near_budget_bytes - whole.near_bytes, 0)
    return f" budget={promised.peak_bytes + left}"


def _promised(
    number: int,
    rule: Rule,
    gains: Mapping[int, float],
    labels: Mapping[int, str],
    *,
    counted: bool,
) -> RulePromise:
    """``counted``: whether reads and writes were counted. Estimates from samples are not promised,
    because they lack the stores that the store buffer hides."""
    total = sum(gains.values()) or 1.0
    gain = sum(gains.get(site.number, 0.0) for site in rule.sites)
    return RulePromise(
        rule=number,
        tier=rule.tier,
        allocations=sum(site.allocations for site in rule.sites),
        allocated_bytes=sum(site.allocated_bytes for site in rule.sites),
        peak_bytes=sum(site.peak_bytes for site in rule.sites),
        reads=sum(site.reads for site in rule.sites) if counted else None,
        writes=sum(site.writes for site in rule.sites) if counted else None,
        stall_share=min(gain / total, 1.0),
        at=_at(rule, labels),
    )
