"""The first screen's sentences: how much slower far memory is, and what to do next."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator

from nearfar.records.advice import AdviceResult
from nearfar.records.noise import Reliability
from nearfar.records.results import LatencyCurve, LatencyResult
from nearfar.records.run import Run
from nearfar.records.structures import DeviceSlowdown
from nearfar.report import advice_words
from nearfar.report.html import headline
from nearfar.report.html.sections import parallelism
from nearfar.report.html.verdict import mark_on
from nearfar.report.wording import (
    HUGE_PAGES,
    count,
    format_quantity,
    pages_name,
    plain_tier,
    say,
)
from nearfar.units import format_size

#: The section of a figure, and a sentence with it.
Stated = tuple[str, str]


def on_far_memory(run: Run) -> list[str]:
    """Return sentences on far memory and on the limits of near memory, each marked unless its
    section is steady."""
    said = list(_advice(run))
    for section, sentence in (*_far_latency(run), *_limits(run)):
        mark = mark_on(run, section)
        said.append(f"{sentence.rstrip('.')} ({mark.word})." if mark else sentence)
    return said


def _advice(run: Run) -> Iterator[str]:
    result = run.sections.advice
    if result is not None:
        yield advice_words.headline(result)
        yield from advice_words.needs(result)


def _far_latency(run: Run) -> Iterator[Stated]:
    result = run.sections.latency
    main = headline.main_curve(result) if result else None
    if result is None or main is None:
        return
    for curve in _one_a_tier(result):
        first = _comparable(result, main, curve)
        pair = headline.largest_in_both(first, curve)
        if pair is None or plain_tier(curve.tier) == plain_tier(main.tier):
            continue
        near, point = pair
        ratio = format_quantity("ratio", point.latency_ns / near.latency_ns)
        yield (
            "latency",
            f"{plain_tier(curve.tier)} ({pages_name(curve.pages)}): {say(point, 'latency_ns')} a "
            f"load from {format_size(point.region_bytes)}, {ratio} of {plain_tier(main.tier)} "
            f"({pages_name(first.pages)}).",
        )


def _comparable(result: LatencyResult, main: LatencyCurve, far: LatencyCurve) -> LatencyCurve:
    """Return the curve of near memory with the pages of a far one. Where the system chooses the
    pages, they are small ones in most cases."""
    if far.pages in HUGE_PAGES:
        return main
    return headline.small_page_curve(result, main) or main


def _one_a_tier(result: LatencyResult) -> Iterable[LatencyCurve]:
    """Return one curve for each tier: on huge pages, if there is one."""
    found: dict[str, LatencyCurve] = {}
    for curve in sorted(result.curves, key=lambda curve: curve.pages not in HUGE_PAGES):
        found.setdefault(plain_tier(curve.tier), curve)
    return found.values()


def _limits(run: Run) -> Iterator[Stated]:
    sections = run.sections
    if sections.parallelism is not None:
        found = parallelism.finding(sections.parallelism).partition(": ")[0]
        yield "parallelism", f"{found.rstrip('.')}."
    row = sections.compete
    if row is not None:
        near, far = (say(row, f"{side}_bandwidth_bytes_per_s") for side in ("near", "far"))
        yield "compete", f"Copied together: {row.near} {near}, {row.far} {far}."
    devices = sections.structures.devices if sections.structures else []
    if devices:
        least, most = (pick(devices, key=lambda d: d.slowdown) for pick in (min, max))
        said = f"{_slowdown(least)} to {_slowdown(most)} of its volatile counterpart's time"
        yield "structures", f"A persistent structure takes {said} (modelled)."


def _slowdown(one: DeviceSlowdown) -> str:
    return f"{format_quantity('ratio', one.slowdown)} ({one.structure}, {one.device})"


def what_next(run: Run) -> list[tuple[str, str]]:
    """Return commands with their purpose, the most urgent first.

    Only runs about a machine and runs of advice have such commands.
    """
    if run.sections.advice is not None:
        return [*_urgent(run), *_with_plan(run.sections.advice)]
    if run.verb not in ("study", "probe"):
        return []
    return [*_urgent(run), *_STEPS]


def _with_plan(result: AdviceResult) -> Iterator[tuple[str, str]]:
    if result.plan:
        yield advice_words.apply_command(result), "with data placed by the plan"
    yield "nearfar profile list", "far memories for --far, to compare this one with"


def _urgent(run: Run) -> Iterator[tuple[str, str]]:
    judged = run.noise.judged if run.noise else []
    if any(series.verdict is not Reliability.STEADY for series in judged):
        yield _again(run), "again on an idle machine: not all figures are steady"
    warnings = [finding.check for finding in run.findings if finding.level == "warning"]
    if run.noise is not None and not run.noise.noisy and "load" in warnings:
        warnings.remove("load")  # that was before the run, which others did not disturb
    if warnings:
        first = ", ".join(warnings[:2])
        yield "nearfar doctor", f"{count(len(warnings), 'warning')} on this machine: {first}"


def _again(run: Run) -> str:
    """Return the command that repeats a run."""
    advice = run.sections.advice
    if advice is None or advice.perf is not None:
        return f"nearfar {run.verb}"
    if advice.pid is not None:
        return f"nearfar {run.verb} --pid {advice.pid}"
    return f"nearfar {run.verb} -- {shlex.join(advice.program)}"


_STEPS = (
    ("nearfar advise -- PROGRAM", "what your program would lose on far memory"),
    ("nearfar compare BEFORE AFTER", "what changed between two records"),
)
