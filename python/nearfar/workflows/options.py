"""Options of all measurements: how they run, the record's directory, the receiver of progress."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nearfar.measure.progress import ProgressSource, silent

if TYPE_CHECKING:
    from nearfar.measure.session import Effort


@dataclass(frozen=True)
class Options:
    """Options of measurements.

    ``advise`` and ``place_process`` use ``seed``, ``out`` and ``progress`` only.

    ``cpus``: such as ``0-3,8``; ``time_s``, ``runs``: None for the measurement's own limits;
    ``out``: directory of the record, by default a new one in ``nearfar-runs``.
    """

    cpus: str | None = None
    time_s: float | None = None
    runs: int | None = None
    warmup: int = 0
    seed: int = 1
    out: Path | None = None
    progress: ProgressSource = silent

    def budget_s(self, default: float) -> float:
        """Return the seconds to measure: the requested time, or a default."""
        return default if self.time_s is None else self.time_s

    def effort(self, default_s: float, *, apart: bool = True) -> Effort:
        """Return budget and repeats; ``apart``: also in fresh processes."""
        from nearfar.measure.session import Effort

        return Effort(self.budget_s(default_s), self.runs, self.warmup, apart=apart)
