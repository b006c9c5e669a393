"""Statements above all figures: how the run ended, and which figures can be relied on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nearfar.records.noise import NoiseRecord, Reliability
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
#: What to do with sections, by their verdict.
_HEADS = {
    Reliability.STEADY: "Steady, rely on these",
    Reliability.DISTURBED: "Disturbed, repeat on an idle machine",
    Reliability.UNUSABLE: "Unusable",
}
_TONES = {
    Reliability.STEADY: "good",
    Reliability.DISTURBED: "warn",
    Reliability.UNUSABLE: "bad",
}


@dataclass(frozen=True)
class Reliance:
    """The sections with one verdict; ``reasons``: one line each for those that are not steady."""

    verdict: Reliability
    sections: list[str]
    reasons: list[str]

    @property
    def title(self) -> str:
        """The verdict, and what to do."""
        return _HEADS[self.verdict]

    @property
    def tone(self) -> str:
        """``good``, ``warn`` or ``bad``."""
        return _TONES[self.verdict]


def reliance(noise: NoiseRecord) -> Iterator[Reliance]:
    """Yield the sections by verdict, steady ones first; nothing for an older record."""
    found = noise.by_section()
    for verdict in Reliability:
        names = [name for name, (own, _) in found.items() if own is verdict]
        if names:
            lines = [_reason(name, found[name][1]) for name in names if found[name][1]]
            yield Reliance(verdict, names, lines)


def _reason(section: str, reasons: list[str]) -> str:
    different = list(dict.fromkeys(reasons))
    others = len(different) - 1
    more = f", and {count(others, 'more reason')}" if others else ""
    return f"{section}: {different[0]}{more}"


def noise_evidence(noise: NoiseRecord) -> str:
    """Return the evidence behind the verdict, in one sentence."""
    return (
        f"Other processes used {noise.foreign_cpus:.2f} CPUs, the hypervisor took "
        f"{noise.steal:.1%}, "
        f"timed threads had {noise.least_cpu_share:.1%} of their time, and the widest series "
        f"spread by {noise.worst_spread:.0%}."
    )
