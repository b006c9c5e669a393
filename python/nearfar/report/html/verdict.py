"""Statements above all figures: how the run ended, and which figures can be relied on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nearfar.records.noise import NoiseRecord, Reliability
from nearfar.records.numbers import Quantity, numbers
from nearfar.records.run import PREDICTED_SECTIONS, Run, Sections
from nearfar.report.wording import count

_UNFINISHED = {
    "interrupted": "Interrupted: what was finished before is shown, the rest is missing.",
    "failed": "Failed: the run ended in an error; what was finished before is shown.",
    "running": "Still running, or killed: what is finished is shown.",
}


def status_line(status: str) -> str:
    """Return a sentence about an unfinished run; empty if it finished."""
    return _UNFINISHED.get(status, "")


#: The statement for a run that timed nothing, so that noise does not affect its figures.
NOTHING_TIMED = "Nothing was timed: all figures are computed."
#: The statement for a disturbed run of an older record, which has no verdicts on sections.
UNRELIABLE = "Disturbed: do not rely on these figures"
#: Advice on the use of sections, by their verdict.
_HEADS = {
    Reliability.STEADY: "Steady, rely on these",
    Reliability.DISTURBED: "Disturbed, repeat on an idle machine",
    Reliability.UNUSABLE: "Unusable, measure again",
}
#: As above, for steady sections that have figures without an interval.
_FEW = "Steady, but of too few repeats for an interval"
_TONES = {
    Reliability.STEADY: "good",
    Reliability.DISTURBED: "warn",
    Reliability.UNUSABLE: "bad",
}


@dataclass(frozen=True)
class Mark:
    """The verdict on figures that cannot be relied on, for the place where they are shown."""

    verdict: Reliability
    reasons: list[str]

    @property
    def word(self) -> str:
        """``disturbed`` or ``unusable``."""
        return self.verdict.value

    @property
    def tone(self) -> str:
        """``warn`` or ``bad``."""
        return _TONES[self.verdict]

    @property
    def line(self) -> str:
        """The verdict, what to do, and the reason that decides it."""
        return ": ".join(filter(None, (_HEADS[self.verdict], _deciding(self.reasons))))


def mark_on(run: Run, section: str) -> Mark | None:
    """Return the mark of the figures of a section; None if they are steady or not judged."""
    found = run.verdict_on(section)
    if found is None or found.verdict is Reliability.STEADY:
        return None
    return Mark(found.verdict, found.reasons)


def marks(run: Run) -> dict[str, Mark]:
    """Return the marks of all sections of a record that have one."""
    held = [name for name in Sections.model_fields if getattr(run.sections, name) is not None]
    return {name: mark for name in held if (mark := mark_on(run, name)) is not None}


def marks_elsewhere(run: Run) -> dict[str, Mark]:
    """Return the marks of measurements that are not sections, such as that of the host."""
    judged = run.noise.by_section() if run.noise else {}
    if not judged.keys() & Sections.model_fields.keys():
        return {}
    return {
        name: Mark(verdict, reasons)
        for name, (verdict, reasons) in judged.items()
        if name not in Sections.model_fields and verdict is not Reliability.STEADY
    }


@dataclass(frozen=True)
class Reliance:
    """The sections with one verdict; ``reasons``: one line each for those that are not steady.

    ``few``: whether the sections are steady, but have figures with too few repeats for an interval.
    """

    verdict: Reliability
    sections: list[str]
    reasons: list[str]
    few: bool = False

    @property
    def title(self) -> str:
        """The verdict, and what to do."""
        return _FEW if self.few else _HEADS[self.verdict]

    @property
    def tone(self) -> str:
        """``good``, ``warn`` or ``bad``."""
        return _TONES[Reliability.DISTURBED if self.few else self.verdict]


def reliance(run: Run) -> Iterator[Reliance]:
    """Yield the sections by verdict, steady ones first; nothing for an older record."""
    found = run.noise.by_section() if run.noise else {}
    few = _of_few_repeats(run)
    for verdict in Reliability:
        names = [name for name, (own, _) in found.items() if own is verdict]
        lacking = [name for name in names if name in few and verdict is Reliability.STEADY]
        whole = [name for name in names if name not in lacking]
        if whole:
            lines = [_reason(name, found[name].reasons) for name in whole if found[name].reasons]
            yield Reliance(verdict, whole, lines)
        if lacking:
            yield Reliance(verdict, lacking, [], few=True)


def _of_few_repeats(run: Run) -> set[str]:
    """Return the sections that have figures of repeats, but too few of them for an interval."""
    return {
        PREDICTED_SECTIONS.get(section, section)
        for number in numbers(run.sections)
        if isinstance(number, Quantity)
        and number.interval is None
        and number.provenance is not None
        and number.provenance.is_sampled()
        for section in [number.path.partition("/")[0]]
    }


def _reason(section: str, reasons: list[str]) -> str:
    return f"{section}: {_deciding(reasons)}"


def _deciding(reasons: list[str]) -> str:
    """Return the first reason, which decides the verdict, and the number of others."""
    different = list(dict.fromkeys(reasons))
    others = len(different) - 1
    more = f", and {count(others, 'more reason')}" if others > 0 else ""
    return f"{different[0]}{more}" if different else ""


def noise_evidence(noise: NoiseRecord) -> str:
    """Return the evidence behind the verdict, in one sentence."""
    return (
        f"Other processes used {noise.foreign_cpus:.2f} CPUs, the hypervisor took "
        f"{noise.steal:.1%}, "
        f"timed threads had {noise.least_cpu_share:.1%} of their time, and the widest series "
        f"spread by {noise.worst_spread:.0%}."
    )
