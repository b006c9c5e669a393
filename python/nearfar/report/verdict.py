"""What must be said before any figure: how the run ended, and whether the machine was quiet."""

from __future__ import annotations

from nearfar.records.noise import NoiseRecord

_UNFINISHED = {
    "interrupted": "Interrupted: what was finished before is shown, the rest is missing.",
    "failed": "Failed: the run ended in an error; what was finished before is shown.",
    "running": "Still running, or ended without a word: what is finished is shown.",
}


def status_line(status: str) -> str:
    """A sentence about a run that did not finish; empty where it did."""
    return _UNFINISHED.get(status, "")


#: A run that computed and timed nothing: the machine's noise does not touch its figures.
NOTHING_TIMED = "Nothing was timed: all figures are computed."


def noise_evidence(noise: NoiseRecord) -> str:
    """The evidence behind the verdict, in one sentence."""
    return (
        f"Others used {noise.foreign_cpus:.2f} processors, the hypervisor took {noise.steal:.1%}, "
        f"timed threads had {noise.least_cpu_share:.1%} of their time, and the widest series "
        f"spread by {noise.worst_spread:.0%}."
    )
