"""``nearfar compare``: compare the figures of runs or of two profiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from nearfar.cli import flags

if TYPE_CHECKING:
    from nearfar.comparison.changes import Change, Comparison
    from nearfar.comparison.shifts import Shift
    from nearfar.records.walk import Quantity
    from nearfar.workflows.subjects import Subject


def compare(
    sides: Annotated[
        list[str],
        typer.Argument(
            metavar="A… B",
            show_default=False,
            help="Runs, profiles, hosts or JSON files of `sim` and `predict`: the base, optionally "
            "more base runs (for CI), and last the one to compare.",
        ),
    ],
    threshold: Annotated[
        str,
        typer.Option(
            "--threshold", metavar="SHARE", help="Largest accepted degradation, as 5% or 0.05."
        ),
    ] = "5%",
    json: flags.Json = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 4 if a run was too disturbed to decide.")
    ] = False,
) -> int:
    """Compare the figures of runs, of two profiles, or of two simulations.

    Exits with 1 if a figure of B is worse than A's by more than the threshold: a longer latency or
    time, a lower bandwidth, a higher price or energy. Where both sides have intervals, the
    intervals must not overlap, and the probability that nothing changed, corrected for the number
    of figures (Holm), must be below 5 %. Also exits with 1 if a whole section got worse by more
    than the threshold: the geometric mean of its figures, with its entire bootstrap interval.
    Sizes, counts, ratios of two measurements, and figures of fewer than six repeats are shown and
    decide nothing. A disturbed run decides nothing either: the differences are shown, and the exit
    code is 0.

    Several runs before B are merged: each figure is their median, and its interval spans all of
    theirs. Such a base includes variation from day to day; a single run does not.

    Examples:

        nearfar compare nearfar-runs/20250102T030405Z-study nearfar-runs/20250103T030405Z-study

        nearfar compare nearfar-runs/*-study --strict --json compared.json

        nearfar compare ddr4 optane-100 --threshold 20%
    """
    from nearfar.errors import ExitCode, NoisyError
    from nearfar.report.console import note, print_result, write_json
    from nearfar.report.terminal.comparison import comparison
    from nearfar.units import parse_share

    verdict = _judged(sides, parse_share(threshold))
    if json is not None:
        write_json(json, verdict.document())
    if json != "-":
        shown = comparison(
            verdict.found, verdict.moved, verdict.limit, verdict.heads, noisy=verdict.undecided
        )
        print_result(shown)
    for name in verdict.noisy:
        effect = "nothing is decided" if verdict.decides(name) else "it is left out of the base"
        note(f"{name} was disturbed: its figures prove no change, so {effect}")
    if verdict.undecided and strict:
        raise NoisyError("a run was too disturbed to decide", "measure again on an idle machine")
    return ExitCode.VIOLATION if verdict.worse and not verdict.undecided else ExitCode.OK


def _judged(sides: Sequence[str], limit: float) -> _Verdict:
    """Compare the last side with the others. Raises BadInputError if they cannot be compared."""
    from nearfar.comparison.shifts import shifts_of_runs
    from nearfar.errors import BadInputError
    from nearfar.records.run import Run
    from nearfar.workflows.subjects import compared, load

    if len(sides) < 2:
        raise BadInputError("compare needs at least two sides", "name two runs, or two profiles")
    loaded = [(name, load(name)) for name in sides]
    noisy = [name for name, side in loaded if _noisy(side)]
    *before, (last, now) = loaded
    base = [pair for pair in before if not _noisy(pair[1])] or before
    found = compared([side for _, side in base], now)
    if not found.changes:
        raise BadInputError(
            f"{' and '.join(sides)} have no figure in common",
            "compare runs of the same verb and tiers, or profiles that share keys",
        )
    runs = [side for _, side in base if isinstance(side, Run)]
    moved = shifts_of_runs(now, runs) if isinstance(now, Run) else []
    return _Verdict(found, moved, limit, [name for name, _ in base], last, noisy)


def _noisy(side: Subject) -> bool:
    from nearfar.records.run import Run

    return isinstance(side, Run) and side.noise is not None and side.noise.noisy


def _short(name: str) -> str:
    return name.rstrip("/").removesuffix("/run.json").rsplit("/", 1)[-1]


@dataclass(frozen=True)
class _Verdict:
    """The result: figures, whole sections, and which sides were disturbed."""

    found: Comparison
    moved: list[Shift]
    limit: float
    base: list[str]
    last: str
    noisy: list[str]

    @property
    def heads(self) -> tuple[str, str]:
        """Return short names of the sides."""
        base = _short(self.base[0]) if len(self.base) == 1 else f"{len(self.base)} runs"
        return base, _short(self.last)

    def decides(self, name: str) -> bool:
        """Whether the verdict needs this side: a disturbed one of several base runs is left out."""
        return name == self.last or name in self.base

    @property
    def undecided(self) -> bool:
        """Whether nothing can be decided."""
        return any(self.decides(name) for name in self.noisy)

    @property
    def worse(self) -> bool:
        """Whether a figure, or a section as a whole, got worse beyond the limit."""
        whole = any(shift.worse(self.limit) for shift in self.moved)
        return whole or bool(self.found.worse(self.limit))

    def document(self) -> str:
        """The JSON document."""
        import json

        worse = {id(change) for change in self.found.worse(self.limit)}
        improved = {id(change) for change in self.found.better(self.limit)}
        chances = self.found.chances
        figures = [
            {
                **_change(c),
                "chance": chances.get(id(c)),
                "worse": id(c) in worse,
                "improved": id(c) in improved,
            }
            for c in self.found.changes
        ]
        return json.dumps(
            {
                "a": self.base[-1],
                "base": self.base,
                "b": self.last,
                "threshold": self.limit,
                "too_noisy": self.noisy,
                "worse": len(worse),
                "improved": len(improved),
                "sections": [_shift(shift, self.limit) for shift in self.moved],
                "figures": figures,
                "only_a": [_named(quantity) for quantity in self.found.only_before],
                "only_b": [_named(quantity) for quantity in self.found.only_now],
            },
            indent=1,
        )


def _shift(shift: Shift, limit: float) -> dict[str, object]:
    return {
        "section": shift.section,
        "figures": shift.figures,
        "cost_ratio": shift.cost,
        "intervals": {"cost_ratio": (shift.low, shift.high)},
        "worse": shift.worse(limit),
        "improved": shift.better(limit),
    }


def _named(quantity: Quantity) -> dict[str, object]:
    from nearfar.report.terminal.comparison import figure_name

    return {
        "figure": figure_name(quantity),
        "path": quantity.path,
        "key": quantity.key,
        "conditions": dict(quantity.conditions),
    }


def _change(change: Change) -> dict[str, object]:
    from nearfar.comparison.direction import better

    sides = {"a": change.before, "b": change.now}
    ratio = change.ratio()
    return {
        **_named(change.now),
        **{side: quantity.value for side, quantity in sides.items()},
        "ratio": ratio if ratio < float("inf") else None,
        "intervals": {s: q.interval for s, q in sides.items() if q.interval},
        "provenance": {
            s: q.provenance.model_dump(mode="json") for s, q in sides.items() if q.provenance
        },
        "intervals_overlap": change.agree(),
        "better": better(change.now.key),
    }
