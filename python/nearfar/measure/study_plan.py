"""The sections of studies and probes, and the time that each of them gets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from nearfar._native import parse_tier
from nearfar.machine.model import Machine
from nearfar.measure import matrix
from nearfar.measure.session import Effort

#: The sections of a study in execution order, each with its fraction of the time. The remainder is
#: for setup and for the report.
STUDY = {
    "latency": 0.15,
    "bandwidth": 0.08,
    "stream": 0.08,
    "parallelism": 0.04,
    "blocks": 0.04,
    "access": 0.06,
    "persistence": 0.05,
    "map": 0.05,
    "intset": 0.05,
    "loaded": 0.05,
    "tails": 0.02,
    "compete": 0.05,
    "stencil": 0.07,
    "pipeline": 0.03,
    "mapped": 0.07,
    "structures": 0.1,
}
#: Fraction of the section ``matrix``, which a study has on a machine with several memory nodes. The
#: other sections then get proportionally less.
MATRIX = 0.05
#: The sections of a probe.
PROBE = {
    "latency": 0.3,
    "bandwidth": 0.12,
    "parallelism": 0.07,
    "blocks": 0.07,
    "access": 0.14,
    "persistence": 0.1,
    "loaded": 0.1,
    "tails": 0.04,
}
#: No section starts later than at this multiple of the whole time. Sections may exceed their time,
#: because they run a minimum number of epochs.
LATEST_START = 2.0
#: A section gets at least this fraction of its time, however much earlier ones exceeded theirs.
MIN_LEFT = 0.2
#: The sections of a coarse probe, which measures one region size per octave.
QUICK = {"latency": 0.45, "bandwidth": 0.2, "parallelism": 0.1, "persistence": 0.1, "loaded": 0.15}
#: The sections of a probe of a paced tier. Only array kernels can be slowed down to its pace,
#: because they know how many bytes they move.
PACED = {"bandwidth": 0.8}


@dataclass(frozen=True)
class StudyPlan:
    """The contents of a study or of a probe."""

    #: Latency and bandwidth of all tiers are measured; most other sections use the first tier.
    tiers: Sequence[str]
    #: Sections in execution order, with their fractions of ``time_s``.
    shares: Mapping[str, float]
    time_s: float
    cpus: Sequence[int]
    #: Largest region of the latency curves.
    region_bytes: int
    #: Directory of the file that the section ``mapped`` uses.
    path: Path = Path()
    #: Numbers of threads; empty: the default ones.
    threads: Sequence[int] = ()
    #: Size of each array; None: four times the last cache, at least 64 MiB.
    array_bytes: int | None = None
    #: Fixed number of epochs of each section; None: as many as precision requires.
    runs: int | None = None
    #: Epochs of each section that run first and are not used.
    warmup: int = 0
    #: Sections that the tier does not support; they are listed as skipped.
    left_out: Sequence[str] = ()
    #: Whether ``compete`` also runs with half and with most of the threads in far memory, not only
    #: with one.
    curve: bool = False
    #: Time of each section beyond its own, for epochs that replace disturbed ones.
    patience_s: float = 0.0
    #: ``Effort.max_s`` of a section, as a multiple of its time.
    max_overrun: float = math.inf

    def effort(self, section: str, parts: int = 1) -> Effort:
        """The effort of one part of a section that has ``parts`` equal parts."""
        budget_s = self.time_s * self.shares[section] / parts
        return Effort(
            budget_s,
            self.runs,
            self.warmup,
            self.shares is not QUICK,
            self.patience_s / parts,
            self.max_overrun * budget_s,
        )

    def within(self, left_s: float, left_share: float) -> StudyPlan:
        """The plan for the next section.

        ``left_share`` is the sum of the fractions of this and of all later sections; ``left_s`` is
        the time that they have left. If that is too little, the section gets less time; if it is
        more than they need, the surplus is for epochs that replace disturbed ones.
        """
        pace = left_s / (left_share * self.time_s)
        return replace(
            self,
            time_s=self.time_s * min(max(pace, MIN_LEFT), 1.0),
            patience_s=max(left_s - left_share * self.time_s, 0.0),
        )


def study_shares(machine: Machine) -> dict[str, float]:
    """Sections of a study of this machine, and their fractions of the time."""
    if len(matrix.memory_nodes(machine)) < 2:
        return dict(STUDY)
    others = {name: share * (1 - MATRIX) for name, share in STUDY.items()}
    latency_share = others.pop("latency")
    return {"latency": latency_share, "matrix": MATRIX, **others}


def memory_tiers(machine: Machine) -> list[str]:
    """The tiers of this machine that a study measures: all except ``file:``.

    Files are measured by the section ``mapped``.
    """
    return [t.spec for t in machine.tiers if parse_tier(t.spec)["persists"] != "msync"]
