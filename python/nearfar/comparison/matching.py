"""Matched figures of two runs, of two profiles or of two answers.

Figures of runs match if key, path, origin and conditions are equal. Several base runs are merged: a
figure is the median of theirs, and its interval spans all of their intervals. Figures of profiles
match if key and coordinates are equal. Figures of answers (``nearfar sim``, as JSON or as a record)
match if key, path and distinguishing conditions are equal, so that answers for two memories can be
compared; settings that differ are listed.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from pydantic import BaseModel

from nearfar.comparison.changes import Change, Comparison
from nearfar.comparison.direction import is_compared
from nearfar.comparison.settings import (
    MEASURED,
    NOT_CHOSEN,
    THREADS,
    changed_conditions,
    changed_settings,
    threads_of,
)
from nearfar.comparison.tiers import figures_of, tiers_of
from nearfar.records.figures import Answer, Provenance
from nearfar.records.numbers import Conditions, Quantity, SettingNumber, numbers, numbers_of
from nearfar.records.profile import Datasheet, timing_of
from nearfar.records.run import Run

#: Conditions that may differ between two runs of the same measurement: those found on the machine,
#: and two that are chosen (others that differ make it another measurement).
_FREE = MEASURED | {"size_bytes", "interleave_bytes"}

#: Sections that use one region larger than every cache. Its size depends on the measured size of
#: the last cache, and may therefore differ between runs.
_BEYOND_CACHE = ("parallelism", "blocks", "tails")


def compare_runs(
    now: Run, before: Run | Sequence[Run], tiers: tuple[str, str] | None = None
) -> Comparison:
    """Match figures that were measured under the same conditions; merge several base runs.

    ``tiers``: compare the figures of the second tier in ``now`` with those of the first in
    ``before``. Their origins may then differ, as those of emulated and measured memory do.
    """
    runs = [before] if isinstance(before, Run) else before
    if tiers is not None:
        past_tier, now_tier = tiers
        past = [figures_of(past_tier, compared_figures(run)) for run in runs]
        present = figures_of(now_tier, compared_figures(now))
        return _match(present, _merged_of(past, _on_a_tier), _on_a_tier)
    together = _merged_of(map(compared_figures, runs), _identity_in_run)
    present = list(compared_figures(now))
    found = _match(present, together, _identity_in_run)
    varied = changed_conditions(present, together)
    if found.changes:
        # Show the chosen conditions that differ although figures match: size and interleaving.
        varied = [each for each in varied if each.key in _FREE]
    else:
        # The runs were measured under different conditions, like two cells of a sweep: match
        # figures without the conditions that differ.
        without = {each.key for each in varied} | NOT_CHOSEN
        found = _match(present, together, partial(_identity_in_run, without=without))
    settings = changed_settings(_answers_of(now), _answers_of(runs[-1]))
    return replace(found, settings=[*settings, *varied])


def tiers_of_run(run: Run) -> list[str]:
    """Return the tiers whose figures ``compare_runs`` can compare."""
    return tiers_of(compared_figures(run))


def _merged_of(
    runs: Iterable[Iterable[Quantity]], identity: Callable[[Quantity], Hashable]
) -> list[Quantity]:
    """Return the figures of several runs; a figure of several of them is merged into one."""
    past: dict[Hashable, list[Quantity]] = defaultdict(list)
    for run in runs:
        for key, quantity in {identity(quantity): quantity for quantity in run}.items():
            past[key].append(quantity)
    return [_merged(quantities) for quantities in past.values()]


def _merged(quantities: Sequence[Quantity]) -> Quantity:
    """Return the median of a figure of several runs, with an interval that spans all of theirs."""
    *_, last = quantities
    if len(quantities) == 1:
        return last
    intervals = [quantity.interval for quantity in quantities]
    bounds = [interval for interval in intervals if interval is not None]
    hull = (min(low for low, _ in bounds), max(high for _, high in bounds)) if bounds else None
    value = statistics.median(quantity.value for quantity in quantities)
    return replace(last, value=value, interval=hull if len(bounds) == len(intervals) else None)


def compare_sheets(now: Datasheet, before: Datasheet) -> Comparison:
    """Match the figures that two profiles, or two hosts, have in common."""
    return _match(_of_sheet(now), _of_sheet(before), lambda q: (q.key, q.conditions))


def compare_answers(now: BaseModel, before: BaseModel) -> Comparison:
    """Match the figures that two answers have in common."""
    found = _match(
        figures_of_answer(now), figures_of_answer(before), lambda q: (q.path, q.key, q.conditions)
    )
    return replace(found, settings=changed_settings(numbers_of(now, ""), numbers_of(before, "")))


def _match(
    now: Iterable[Quantity], before: Iterable[Quantity], identity: Callable[[Quantity], Hashable]
) -> Comparison:
    past = {identity(quantity): quantity for quantity in before}
    present = {identity(quantity): quantity for quantity in now}
    return Comparison(
        [Change(present[key], past[key]) for key in present if key in past],
        [quantity for key, quantity in past.items() if key not in present],
        [quantity for key, quantity in present.items() if key not in past],
    )


def compared_figures(run: Run) -> Iterator[Quantity]:
    """Yield the compared figures of a run.

    Figures of answers and of a sweep's cells have only conditions that distinguish them; those of
    cells have their flags, too.
    """
    without_context = []
    for number in numbers(run.sections):
        if not isinstance(number, Quantity) or not is_compared(number.key):
            continue
        if number.path.startswith("sweep/") or _is_of_answer(run, number):
            without_context.append(number)
        else:
            yield number
    yield from _distinct(without_context)


def _is_of_answer(run: Run, number: Quantity | SettingNumber) -> bool:
    return isinstance(getattr(run.sections, number.path.split("/")[0], None), Answer)


def _answers_of(run: Run) -> Iterator[Quantity | SettingNumber]:
    return (number for number in numbers(run.sections) if _is_of_answer(run, number))


def figures_of_answer(answer: BaseModel) -> Iterator[Quantity]:
    """Yield the figures of an answer, each with the conditions that distinguish it."""
    found = (number for number in numbers_of(answer, "") if isinstance(number, Quantity))
    return _distinct([quantity for quantity in found if is_compared(quantity.key)])


def _distinct(quantities: Sequence[Quantity]) -> Iterator[Quantity]:
    """Yield quantities with the flags and those conditions that distinguish them.

    Of a group of quantities with equal path, key and flags, keep only the conditions that differ
    within the group, and the flags. If these do not distinguish all quantities, number them. This
    drops facts that a result stores next to its figures, such as versions.
    """
    groups: dict[Hashable, list[Quantity]] = defaultdict(list)
    for quantity in quantities:
        flags = dict(quantity.conditions).get("flags")
        groups[quantity.path, quantity.key, flags].append(quantity)
    for group in groups.values():
        conditions = _distinguishing(group)
        for quantity, distinguishing in zip(group, conditions, strict=True):
            yield replace(quantity, conditions=distinguishing)


def _distinguishing(group: Sequence[Quantity]) -> list[Conditions]:
    seen: dict[str, set[object]] = defaultdict(set)
    for quantity in group:
        for key, value in quantity.conditions:
            seen[key].add(value)
    kept = {key for key, values in seen.items() if len(values) > 1} | {"flags"}
    found = [tuple(pair for pair in q.conditions if pair[0] in kept) for q in group]
    if len(set(found)) == len(group):
        return found
    return [(*conditions, ("point", index)) for index, conditions in enumerate(found, 1)]


def _on_a_tier(quantity: Quantity) -> Hashable:
    """The identity of a figure in a comparison of tiers: without its origin, which may differ."""
    *identity, _origin = _identity_in_run(quantity)
    return tuple(identity)


def _identity_in_run(quantity: Quantity, without: Collection[str] = ()) -> tuple[Hashable, ...]:
    beyond = quantity.path.startswith(_BEYOND_CACHE)
    free = _FREE.union(without, {"region_bytes"} if beyond else ())
    held = tuple(pair for pair in quantity.conditions if pair[0] not in free)
    origin = quantity.provenance.origin.value if quantity.provenance else ""
    threads = 0 if THREADS in without else threads_of(quantity)
    # A result over several numbers of threads or sizes has one of its points at the top level, the
    # others in its field ``sweep``: a figure may be in the one place here, in the other there.
    path = quantity.path.replace("/sweep", "")
    return path, quantity.key, held, threads, origin


def _of_sheet(sheet: Datasheet) -> Iterator[Quantity]:
    """Yield all values and points of a profile. The coordinates of a point are its conditions."""
    for key, figure in sheet.figures.items():
        if (timing := timing_of(key)) and "clock_ns" in sheet.figures:
            yield Quantity("", f"{timing}_ns", sheet.timing_ns(timing), (), None, None)
            continue
        made = figure.origin
        provenance = Provenance(origin=made, statistic="claim", samples=0) if made else None
        if figure.value is not None:
            interval = (figure.low, figure.high) if figure.low is not None else None
            yield Quantity("", key, figure.value, (), interval, provenance)  # type: ignore[arg-type]
        for index, (*where, value) in enumerate(figure.points or []):
            conditions: Conditions = tuple(zip(figure.x or [], where, strict=True))
            interval = figure.ranges[index] if figure.ranges else None
            yield Quantity("", key, value, conditions, interval, provenance)
