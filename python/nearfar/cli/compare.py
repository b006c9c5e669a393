"""``nearfar compare``: runs, or two profiles, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from nearfar.cli import options

if TYPE_CHECKING:
    from nearfar.cli.subjects import Subject
    from nearfar.records.compare import Change, Comparison
    from nearfar.records.shifts import Shift
    from nearfar.records.walk import Quantity


def compare(
    sides: Annotated[
        list[str],
        typer.Argument(
            metavar="A… B",
            show_default=False,
            help="Runs, profiles or hosts: the base, several runs of it for CI, and what is "
            "compared with it.",
        ),
    ],
    threshold: Annotated[
        str,
        typer.Option(
            "--threshold", metavar="SHARE", help="How much worse is too much, as 5% or 0.05."
        ),
    ] = "5%",
    json: options.Json = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 4 if a run was too noisy to decide.")
    ] = False,
) -> int:
    """Put the same figures of runs, or of two profiles, side by side.

    Exits with 1 if a figure of B is worse than A's by more than the threshold: a longer latency or
    time, a lower bandwidth, a higher price or energy. Where both sides have intervals these must
    lie apart, and the chance that nothing changed, corrected for how many figures are compared
    (Holm), must be below 5 %. Also if a whole section got worse by more: the geometric mean of its
    figures, with all of its bootstrap interval. Sizes, counts and ratios are shown and decide
    nothing, nor does a run that was too noisy: then the differences are shown, and the exit code
    is 0.

    Of several runs before B, figures are taken together: their median, within all of their
    intervals. That knows how a machine differs from day to day; one run alone does not.

    Examples:

        nearfar compare nearfar-runs/20250102T030405Z-study nearfar-runs/20250103T030405Z-study

        nearfar compare nearfar-runs/*-study --strict --json compared.json

        nearfar compare ddr4 optane-100 --threshold 20%
    """  # fmt: skip
    from nearfar.cli.console import note, print_result, write_json
    from nearfar.errors import ExitCode, NoisyError
    from nearfar.report.text.comparison import comparison
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
        told = "so nothing is decided" if verdict.decides(name) else "so it is left out of the base"
        note(f"{name} was too noisy: its figures prove no change, {told}")
    if verdict.undecided and strict:
        raise NoisyError("a run was too noisy to decide", "measure again on a quiet machine")
    return ExitCode.VIOLATION if verdict.worse and not verdict.undecided else ExitCode.OK


def _judged(sides: Sequence[str], limit: float) -> _Verdict:
    """The last against the others. Raises BadInputError for what cannot be compared."""
    from nearfar.cli.subjects import compared, load
    from nearfar.errors import BadInputError
    from nearfar.records.run import Run
    from nearfar.records.shifts import shifts_of_runs

    if len(sides) < 2:
        raise BadInputError("there is nothing to compare it with", "name two runs, or two profiles")
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
    """What was found: figures, whole sections, and which sides were too noisy to tell."""

    found: Comparison
    moved: list[Shift]
    limit: float
    base: list[str]
    last: str
    noisy: list[str]

    @property
    def heads(self) -> tuple[str, str]:
        """The sides in a few letters."""
        base = _short(self.base[0]) if len(self.base) == 1 else f"{len(self.base)} runs"
        return base, _short(self.last)

    def decides(self, name: str) -> bool:
        """Whether a side is needed: a noisy run among several before is left out."""
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
        chances = self.found.chances
        figures = [
            {**_change(c), "chance": chances.get(id(c)), "worse": id(c) in worse}
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
    }


def _named(quantity: Quantity) -> dict[str, object]:
    from nearfar.report.text.comparison import figure_name

    return {
        "figure": figure_name(quantity),
        "path": quantity.path,
        "key": quantity.key,
        "conditions": dict(quantity.conditions),
    }


def _change(change: Change) -> dict[str, object]:
    from nearfar.records.compare import better

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
