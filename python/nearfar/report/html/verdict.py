"""Statements above all figures: how the run ended, and whether the machine was idle."""

from __future__ import annotations

from nearfar.records.noise import NoiseRecord

_UNFINISHED = {
    "interrupted": "Interrupted: what was finished before is shown, the rest is missing.",
    "failed": "Failed: the run ended in an error; what was finished before is shown.",
    "running": "Still running, or killed: what is finished is shown.",
}


def status_line(status: str) -> str:
    """Return a sentence about an unfinished run; empty if it finished."""
    return _UNFINISHED.get(status, "")


#: For a run that timed nothing: the machine's noise does not affect its figures.
NOTHING_TIMED = "Nothing was timed: all figures are computed."


def noise_evidence(noise: NoiseRecord) -> str:
    """Return the evidence behind the verdict, in one sentence."""
    return (
        f"Other processes used {noise.foreign_cpus:.2f} CPUs, the hypervisor took "
        f"{noise.steal:.1%}, "
        f"timed threads had {noise.least_cpu_share:.1%} of their time, and the widest series "
        f"spread by {noise.worst_spread:.0%}."
    )
