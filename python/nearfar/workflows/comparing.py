"""Compare runs, profiles or answers, and decide whether anything got worse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nearfar.comparison.changes import Change, Comparison
from nearfar.comparison.direction import better_of
from nearfar.comparison.matching import compare_runs, compared_figures, tiers_of_run
from nearfar.comparison.shifts import Shift, shifts_of_runs
from nearfar.comparison.tiers import figures_of
from nearfar.errors import BadInputError, ExitCode
from nearfar.records.figures import Answer
from nearfar.records.run import Run
from nearfar.report.terminal.comparison import figure_name
from nearfar.workflows.subjects import compared, load

if TYPE_CHECKING:
    from nearfar.records.numbers import Quantity
    from nearfar.workflows.subjects import Subject


def compare(sides: Sequence[str], limit: float, tiers: Sequence[str] = ()) -> ComparisonVerdict:
    """Compare the last side with the others. Raises BadInputError if they cannot be compared.

    ``tiers``: none, or two: that of the base, and that of the last side. One run with two tiers is
    compared with itself.
    """
    if len(tiers) not in (0, 2):
        raise BadInputError(
            f"--tier needs two tiers to compare, and {len(tiers)} is given",
            "give it twice: --tier dram --tier dram,pages=thp",
        )
    if len(sides) == 1 and tiers:
        sides = [*sides, *sides]
    if len(sides) < 2:
        raise BadInputError(
            "compare needs at least two sides",
            "name two runs, or two profiles; or one run and two of its tiers with --tier",
        )
    loaded = [(name, load(name)) for name in sides]
    noisy = [name for name, side in loaded if _noisy(side)]
    *before, (last, now) = loaded
    base = [pair for pair in before if not _noisy(pair[1])] or before
    two = (tiers[0], tiers[1]) if tiers else None
    base_sides = [side for _, side in base]
    found = _of_tiers(base, (last, now), two) if two else compared(base_sides, now)
    if not found.changes:
        raise BadInputError(
            f"{' and '.join(sides)} have no figure in common",
            "compare runs of the same verb and tiers, or profiles that share keys",
        )
    runs = [side for side in base_sides if isinstance(side, Run)]
    shifts = shifts_of_runs(now, runs, two) if isinstance(now, Run) else []
    remarks = _remarks_of_one_side(base[0], (last, now)) if len(base) == 1 else []
    names = [name for name, _ in base]
    return ComparisonVerdict(found, shifts, limit, names, last, noisy, two, remarks)


def _remarks_of_one_side(*sides: tuple[str, Subject]) -> list[str]:
    """Return what only one of two sides warns of, or leaves out, in a section that both have."""
    remarks = [_remarks(side) if isinstance(side, Run) else {} for _, side in sides]
    return [
        f"{_short(name)} alone: {remark}"
        for (name, _), own, others in zip(sides, remarks, reversed(remarks), strict=True)
        for section in own.keys() & others.keys()
        for remark in own[section]
        if remark not in others[section]
    ]


def _remarks(run: Run) -> dict[str, list[str]]:
    """Return warnings and limits by section."""
    return {
        section: [*result.warnings, *result.limits]
        for section, result in run.sections
        if isinstance(result, Answer)
    }


def _of_tiers(
    base: Sequence[tuple[str, Subject]], last: tuple[str, Subject], tiers: tuple[str, str]
) -> Comparison:
    """Compare a tier of the last run with a tier of the others."""
    for (name, side), tier in [*((pair, tiers[0]) for pair in base), (last, tiers[1])]:
        if not isinstance(side, Run):
            raise BadInputError(
                f"--tier selects figures of runs, and {name} is none", "omit --tier"
            )
        if not figures_of(tier, compared_figures(side)):
            known = tiers_of_run(side)
            raise BadInputError(
                f"{name} has no figure of tier {tier}",
                f"give one of its tiers: {', '.join(known)}" if known else "measure it with probe",
            )
    runs = [side for _, side in base if isinstance(side, Run)]
    assert isinstance(last[1], Run)
    return compare_runs(last[1], runs, tiers)


def _noisy(side: Subject) -> bool:
    return isinstance(side, Run) and side.noise is not None and side.noise.noisy


def _short(name: str) -> str:
    folder = name.rstrip("/").removesuffix("/run.json").removesuffix("/answer.json")
    return folder.rsplit("/", 1)[-1]


@dataclass(frozen=True)
class ComparisonVerdict:
    """The result: compared figures, shifts of sections, and the names of disturbed sides."""

    found: Comparison
    section_shifts: list[Shift]
    limit: float
    base: list[str]
    last: str
    noisy: list[str]
    tiers: tuple[str, str] | None = None
    remarks: Sequence[str] = ()

    @property
    def heads(self) -> tuple[str, str]:
        """Return short names of the sides."""
        if self.tiers and self.base == [self.last]:
            return self.tiers
        base = _short(self.base[0]) if len(self.base) == 1 else f"{len(self.base)} runs"
        last = _short(self.last)
        return (
            (f"{base} {self.tiers[0]}", f"{last} {self.tiers[1]}") if self.tiers else (base, last)
        )

    def exit_code(self) -> int:
        """1 if something got worse and no side was too disturbed to decide."""
        return ExitCode.VIOLATION if self.worse and not self.undecided else ExitCode.OK

    def notes(self) -> list[str]:
        """The consequence of each disturbed side for the verdict, and remarks of one side only."""
        effects = {True: "nothing is decided", False: "it is left out of the base"}
        return [
            *(
                f"{name} was disturbed: its figures prove no change, "
                f"so {effects[self.decides(name)]}"
                for name in self.noisy
            ),
            *self.remarks,
        ]

    def decides(self, name: str) -> bool:
        """Whether the verdict uses this side.

        A disturbed run is left out of a base of several runs, unless all of them were disturbed.
        """
        return name == self.last or name in self.base

    @property
    def undecided(self) -> bool:
        """Whether a side that the verdict uses was disturbed."""
        return any(self.decides(name) for name in self.noisy)

    @property
    def worse(self) -> bool:
        """Whether a figure, or a section as a whole, got worse beyond the limit."""
        whole = any(shift.worse(self.limit) for shift in self.section_shifts)
        return whole or bool(self.found.worse(self.limit))

    def document(self) -> dict[str, object]:
        """The JSON document."""
        worse = {id(change) for change in self.found.worse(self.limit)}
        improved = {id(change) for change in self.found.better(self.limit)}
        p_values = self.found.p_values
        figures = [
            {
                **_change(c),
                "chance": p_values.get(id(c)),
                "worse": id(c) in worse,
                "improved": id(c) in improved,
            }
            for c in self.found.changes
        ]
        return {
            "a": self.base[-1],
            "base": self.base,
            "b": self.last,
            **({"tiers": list(self.tiers)} if self.tiers else {}),
            "threshold": self.limit,
            "too_noisy": self.noisy,
            "worse": len(worse),
            "improved": len(improved),
            "settings": [
                {"path": each.path, "key": each.key, "a": each.before, "b": each.now}
                for each in self.found.settings
            ],
            "sections": [_shift(shift, self.limit) for shift in self.section_shifts],
            "figures": figures,
            "only_a": [_named(quantity) for quantity in self.found.only_before],
            "only_b": [_named(quantity) for quantity in self.found.only_now],
        }


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
    return {
        "figure": figure_name(quantity),
        "path": quantity.path,
        "key": quantity.key,
        "conditions": dict(quantity.conditions),
    }


def _change(change: Change) -> dict[str, object]:
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
        "better": better_of(change.now),
    }
