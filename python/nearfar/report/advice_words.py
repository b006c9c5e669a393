"""Advice in words, for terminal and page: the answer, its input figures, its assumptions."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from nearfar._native import NativeError, parse_tier
from nearfar.model.interleave import STEPS
from nearfar.place.fractions import tier_of, weights_of
from nearfar.process.functions import is_library, plain_name
from nearfar.records.advice import (
    ASSUMED,
    CAPPED,
    CAPPED_LIKE_NEAR,
    MUCH_UNKNOWN,
    AdviceResult,
    FarAdvice,
    SiteAdvice,
)
from nearfar.records.choices import DEFAULT_TIER
from nearfar.records.figures import FigureModel
from nearfar.records.profile import DISTURBED
from nearfar.report.wording import (
    count,
    format_interval,
    format_quantity,
    interval_of,
    origin_of,
    say,
    sentence,
)
from nearfar.units import format_size

#: At most this many sites are shown, and only until they cause this fraction of the loss. The
#: record has all sites.
MAX_SITES, MATTERING = 10, 0.99
#: Thresholds above which the first sentences mention an untraced part of the CPU time, an idle
#: part of the wall time, and a loss.
_MIN_UNSEEN, _MUCH_IDLE, _NO_LOSS = 0.005, 0.1, 0.005
#: An answer is uncertain if its interval is wider than both: a width of the slowdown, and a
#: fraction of the loss.
_WIDE, _WIDE_SHARE = 0.1, 0.5
#: From this fraction of the movable memory on, the text says "all of it".
_WHOLE = 0.995
#: The slowdown for which the text names the required near memory.
_WITHIN = 1.05


def headline(result: AdviceResult) -> str:
    """The answer: what far memory costs, and what to keep near."""
    said = f"On {result.far} this program {_runs(result.slowdown_all_far)}; {_plan(result)}."
    if result.unseen_share >= _MIN_UNSEEN:
        said = (
            f"{result.unseen_share:.0%} of the CPU time was in programs that it started and that "
            f"cannot be traced; of the rest: {said[0].lower()}{said[1:]}"
        )
    doubt = _doubt(result)
    return f"{doubt}: {said[0].lower()}{said[1:]}" if doubt else said


def _doubt(result: AdviceResult) -> str:
    """Why the answer may not hold; empty if its interval is narrow and nothing disturbed it."""
    spread = result.interval("slowdown_all_far")
    limit = max(_WIDE, _WIDE_SHARE * (result.slowdown_all_far - 1))
    disturbed = result.disturbed or result.run_disturbed
    if not disturbed and (spread is None or spread[1] - spread[0] <= limit):
        return ""
    reasons = ["other programs ran"] if disturbed else []
    if result.unknown_share > MUCH_UNKNOWN:
        reasons.append(f"the data of {result.unknown_share:.0%} of the samples is unknown")
    said = f"Uncertain, because {' and '.join(reasons)}" if reasons else "Uncertain"
    return f"{said}, {format_interval('slowdown', *spread)}" if spread else said


def finding(result: AdviceResult) -> str:
    """The answer with its intervals, what a small loss needs, and idle time."""
    said = [headline(result), *_intervals(result), *needs(result)]
    busy_s = result.time_near_s if result.cpu_near_s is None else result.cpu_near_s
    idle = 1 - busy_s / result.time_near_s if result.time_near_s else 0.0
    if idle >= _MUCH_IDLE:
        said.append(
            f"It is off the CPU for {idle:.0%} of its wall time"
            f"{', in part because other programs ran' if result.run_disturbed else ''}, which is "
            f"{say(result, 'time_near_s')} near and {say(result, 'time_all_far_s')} far."
        )
    return " ".join(said)


def _runs(slowdown: float) -> str:
    if abs(slowdown - 1) < _NO_LOSS:
        return "loses nothing"
    if slowdown < 1:
        return f"takes {format_quantity('slowdown', slowdown)} the time"
    return f"runs {format_quantity('slowdown', slowdown)} slower"


def _plan(result: AdviceResult) -> str:
    """Memory to keep near, and memory that is near by assumption."""
    size = f"{format_size(result.movable_bytes)} of movable memory"
    whole = result.near_bytes >= _WHOLE * result.movable_bytes
    if not result.movable_bytes:
        said = "it has no memory that a plan could place"
    elif abs(result.slowdown_all_far - result.slowdown_plan) < _NO_LOSS:
        said = f"near memory for its {size} gains nothing{_within_budget(result)}"
    elif not result.near_bytes:
        said = f"with its {size} far it {_runs(result.slowdown_plan)}"
    else:
        near = "all" if whole else format_size(result.near_bytes)
        said = f"keep {near} of its {size} near and it {_runs(result.slowdown_plan)}"
    fixed = f"{format_size(result.fixed_bytes)} of other memory"
    return f"{said} ({fixed} is near by assumption)"


def _within_budget(result: AdviceResult) -> str:
    """That a larger budget would gain; empty if none does."""
    budget = result.near_budget_bytes
    if budget is None:
        return ""
    gains = [p for p in result.curve if result.slowdown_all_far - p.slowdown >= _NO_LOSS]
    if not gains:
        return ""
    least = min(gains, key=lambda point: point.near_bytes)
    return (
        f" within the near budget of {format_size(budget)}, which is too small for its sites: with "
        f"{format_size(least.near_bytes)} near it {_runs(least.slowdown)}"
    )


def _intervals(result: AdviceResult) -> list[str]:
    """The intervals that the headline does not have. Those whose ends round to the same number are
    left out."""
    pairs = [] if _doubt(result) else [("all far", "slowdown_all_far")]
    if result.movable_bytes:
        pairs.append(("with the plan", "slowdown_plan"))
    known = [f"{text} {found}" for text, key in pairs if "–" in (found := interval_of(result, key))]
    return [f"95 % intervals: {', '.join(known)}."] if known else []


def needs(result: FarAdvice) -> list[str]:
    """Near memory for a loss of at most 5 %, if that is not everything or nothing."""
    least = next((p for p in result.within if p.within_slowdown == _WITHIN), None)
    if least is None or least.near_bytes in (0, result.near_bytes):
        return []
    if round(result.slowdown_all_far, 2) <= _WITHIN:  # as it is shown
        return []
    return [f"It needs {format_size(least.near_bytes)} near to stay within 5 %."]


def whole_placements(result: AdviceResult) -> dict[str, str]:
    """Names of the placements of all memory, by key. Without movable memory there is only one."""
    if not result.movable_bytes:
        return {"all_far": "everything far"}
    return {
        "all_far": "everything far",
        "movable_far": "movable memory far, all else near",
        "plan": "with the plan",
    }


def basis(result: AdviceResult) -> list[str]:
    """The figures that the answer stands on, with their sources; empty if a record lacks them."""
    if result.near_latency_ns is None:
        return []
    lines = [_method(result), *_observed(result)]
    lines += [f"near {result.near}: {_memory(result, 'near')}"]
    lines += [f"far {far.far}: {_memory(far, 'far')}{_own_load(far)}" for far in result.fars]
    lines += _page_walk(result)
    cache = format_size(result.last_cache_bytes) if result.last_cache_bytes else "none"
    lines.append(f"last cache: {cache}{_known(result, 'last_cache_bytes')}")
    if result.host_epochs:
        lines.append(
            f"this machine: measured in {count(result.host_epochs, 'epoch')}"
            + (" while other programs ran" if result.disturbed else "")
            + ("; provisional, `nearfar study` completes it" if result.provisional else "")
        )
    if result.standard_input:
        lines.append(f"standard input: {result.standard_input}")
    return lines


def _observed(result: AdviceResult) -> list[str]:
    """The memory that the samples are from, if it is not near memory."""
    if not result.observed_on:
        return []
    latency = format_quantity("latency_ns", result.observed_latency_ns or 0.0)
    known = _known(result, "observed_latency_ns")
    return [
        f"observed on {result.observed_on} of this machine: {latency}{known}; stalls are converted "
        f"to {result.near}"
    ]


def _method(result: AdviceResult) -> str:
    """The method of observation."""
    if result.method == "emulated":
        return "method: traced under an emulator"
    said = f"method: {count(result.samples or 0, 'sample')} of a native run"
    if not result.sampling_period_s:
        return said
    period = format_quantity("sampling_period_s", result.sampling_period_s)
    share = result.sampling_share
    bursts = f", in bursts, {share:.0%} of the time" if share is not None and share < 1 else ""
    return f"{said}, one per {period} of CPU time{bursts}"


def _memory(result: FarAdvice, side: str) -> str:
    parts = []
    for key in ("latency_ns", "bandwidth_bytes_per_s", "page_bytes"):
        value = getattr(result, f"{side}_{key}")
        if value is not None:
            text = format_quantity(key, value) + (" pages" if key == "page_bytes" else "")
            parts.append(text + _remark(result, f"{side}_{key}"))
    return ", ".join(parts)


def _page_walk(result: AdviceResult) -> list[str]:
    """Time that small pages add to a latency, which is that on huge pages."""
    if result.near_page_walk_ns is None:
        return []
    key = "near_page_walk_ns"
    walk = format_quantity("latency_ns", result.near_page_walk_ns)
    pages = format_size(result.near_page_bytes or 0)
    return [
        f"page walk: {walk}{_known(result, key)} more, if the TLB has no entry, on {pages} pages "
        "and with as much memory as the program has (longer with more memory); the latency above "
        "is without it, as on huge pages"
    ]


def _remark(result: FarAdvice, key: str) -> str:
    """Origin and limits of a figure of a memory, in brackets."""
    note = result.provenance[key].note if key in result.provenance else ""
    if key.endswith("latency_ns"):
        return _known(result, key)
    remarks = (ASSUMED, CAPPED, CAPPED_LIKE_NEAR)
    remark = next((text for text in remarks if note.startswith(text)), None)
    if key.endswith("bandwidth_bytes_per_s") and remark:
        return f" ({remark})"
    return _known(result, key) if DISTURBED in note and key in result.intervals else ""


def _own_load(far: FarAdvice) -> str:
    """Far memory under the program's own load; empty where that adds nothing."""
    load = far.all_far_load
    if load is None:
        return ""
    return (
        f"; with all data far {load.utilization:.0%} of its bandwidth, "
        f"{format_quantity('latency_ns', load.latency_ns)}"
    )


def _known(result: FigureModel, key: str) -> str:
    """Range and origin of a figure, in brackets."""
    origin = origin_of(result, key)
    note = result.provenance[key].note if origin and key in result.provenance else ""
    given = ["given" if note.startswith("given") else origin.value] if origin else []
    beset = ["while other programs ran"] if DISTURBED in note else []
    parts = [*filter(None, [interval_of(result, key)]), " ".join(given + beset)]
    parts = [part for part in parts if part]
    return f" ({', '.join(parts)})" if parts else ""


@dataclass(frozen=True)
class Sites:
    """The sites that make nearly all of the loss, their fractions of it, and the others."""

    shown: Sequence[tuple[SiteAdvice, float]]
    others: int
    others_share: float

    @property
    def rest(self) -> str:
        """The others in a line; empty if there are none."""
        if not self.others or not self.shown:
            return ""
        return f"and {count(self.others, 'other site')}, {self.others_share:.1%} of the loss"


def mattering(far: FarAdvice) -> Sites:
    """The sites to show."""
    losses = sorted(((_loss_s(site), site) for site in far.sites), key=lambda pair: -pair[0])
    total = sum(loss for loss, _ in losses)
    shown: list[tuple[SiteAdvice, float]] = []
    covered = 0.0
    for loss, site in losses[:MAX_SITES]:
        if loss <= 0 or covered >= MATTERING:
            break
        shown.append((site, loss / total))
        covered += loss / total
    return Sites(shown, len(losses) - len(shown), max(1 - covered, 0.0) if total else 0.0)


def _loss_s(site: SiteAdvice) -> float:
    return max(site.far_time_s + site.first_touch_s, 0.0)


def site_size(site: SiteAdvice) -> str:
    """Its size; a dash if no page of it was seen: faults of a small stack may not be sampled."""
    return format_size(site.size_bytes) if site.size_bytes else "–"


def site_name(site: SiteAdvice) -> str:
    """``make_node  g.c:6``: the label, after the functions of the calls in it, if all are known.

    For calls within the C++ library: ``main  g.cpp:6 (map::operator[]: _M_create_node)``.
    """
    calls = [call.rpartition(" ")[::2] for call in site.functions]
    inside = [plain_name(name) for name, _ in takewhile(lambda call: is_library(call[0]), calls)]
    if inside and len(inside) < len(calls):
        name, line = calls[len(inside)]
        return f"{plain_name(name)}  {line} ({_library_call(inside)})"
    depth = site.at.count(">") + 1
    names = [plain_name(name) for name, _ in calls[:depth]]
    at = _object_once(site.at)
    return f"{'>'.join(reversed(names))}  {at}" if names and all(names) else at


def _library_call(inside: list[str]) -> str:
    """The function of the C++ library that the program calls, and the one that allocates."""
    called = inside[-1].removeprefix("std::")
    last_parts = [name.rpartition("::")[2] for name in inside[:-1]]
    allocates = next((name for name in last_parts if name != "allocate"), "")
    return f"{called}: {allocates}" if allocates else called


def _object_once(at: str) -> str:
    """``f+0x1>g+0x2 (lib.so)`` of ``f+0x1 (lib.so)>g+0x2 (lib.so)``; a part of a site follows."""
    whole, closed, part = at.rpartition(")")
    calls = [call.rpartition(" (") for call in whole.split(")>")]
    names, objects = [name for name, _, _ in calls], {found for _, _, found in calls}
    if not closed or not all(names) or len(objects) != 1:
        return at
    return f"{'>'.join(names)} ({objects.pop()}){part}"


def placing(site: SiteAdvice) -> str:
    """Where a site is placed, in a table: of an interleaved one how much is near."""
    return site.verdict if site.near_share is None else f"{site.near_share:.1%} near"


def fractions(far: FarAdvice) -> str:
    """Gain of sites on both memories, and the load of both; empty if that is not known."""
    found = far.fractions
    if found is None:
        return ""
    whole, mixed = (
        f"{format_quantity('slowdown', value)}{_known(found, key)}"
        for key, value in (
            ("whole_sites_slowdown", found.whole_sites_slowdown),
            ("slowdown", found.slowdown),
        )
    )
    if not found.applied:
        return (
            f"under its own load: {whole} with each site on one memory; sites on both save less "
            "than 1 %"
        )
    loads = ", ".join(
        f"{load.name} at {load.utilization:.0%} of its bandwidth"
        for load in (found.near_load, found.far_load)
    )
    sure = "" if found.exact else "; a better placement may exist"
    return (
        f"under its own load: {whole} with each site on one memory, {mixed} with sites on both "
        f"({loads}){sure}"
    )


def warnings(result: AdviceResult) -> list[str]:
    """Notes on this run, and the use of the plan."""
    name = result.program[0].rpartition("/")[2]
    lines = [
        f"{text if text.startswith((result.program[0], name)) else sentence(text)}."
        for text in result.warnings
    ]
    if result.plan:
        which = f"the plan, which is for {result.far}" if len(result.fars) > 1 else "the plan"
        lines.append(f"{apply_command(result)} applies {which}.")
    if result.plan and result.pid is None and _mixed(result):
        lines.append(
            "To rehearse it on a machine with one memory node, use --tier far=shm: and no other "
            "--tier: blocks are placed by the plan, but no site is divided between nodes, and "
            "mappings stay near and are not checked."
        )
    return lines


def apply_command(result: AdviceResult) -> str:
    """The command that realizes a plan, with the program that it was made for if it is known."""
    tiers = [f"--tier far={shlex.quote(result.far) if _is_tier(result.far) else 'TIER'}"]
    if _is_tier(result.near) and result.near != DEFAULT_TIER:
        tiers.insert(0, f"--tier near={shlex.quote(result.near)}")
    plan = " ".join([f"--plan {shlex.quote(result.plan or '')}", *tiers, *_mixed(result)])
    if result.pid is not None:
        return f"nearfar place --pid {result.pid} {plan}"
    program = "PROGRAM" if result.perf is not None else program_command(result)
    return f"nearfar run {plan} --check -- {program}"


def _is_tier(memory: str) -> bool:
    """Whether a memory is one of this machine; else a device profile, by its own name."""
    try:
        parse_tier(memory)
    except NativeError:
        return False
    return True


def _mixed(result: AdviceResult) -> list[str]:
    """The options for the tiers of sites on both memories."""
    mixed = {round(site.near_share * STEPS) for site in result.sites if site.near_share is not None}
    return [
        f"--tier {tier_of(steps)}=numa:NEAR+FAR,weights={':'.join(map(str, weights_of(steps)))}"
        for steps in sorted(mixed)
        if 0 < steps < STEPS
    ]


def program_command(result: AdviceResult) -> str:
    """The program as a shell takes it, with the file that it reads as standard input."""
    given = result.standard_input
    return shlex.join(result.program) + (f" < {shlex.quote(given)}" if given[:1] == "/" else "")


def assumptions(result: AdviceResult) -> list[str]:
    """Assumptions of every answer."""
    return [
        *(f"{sentence(text)}." for text in result.limits),
        f"{format_size(result.fixed_bytes)} of memory that no plan moves (stacks, code, small "
        "mappings) stay near in every plan, and are not in the near budget.",
    ]
