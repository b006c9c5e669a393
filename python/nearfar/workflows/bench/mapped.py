"""A mapped file compared with pread, pwrite and io_uring."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nearfar.measure import mapped
from nearfar.units import MIB
from nearfar.workflows.plans import chosen_cpus
from nearfar.workflows.recording import Measured, recorded

if TYPE_CHECKING:
    from nearfar.records.results import MappedResult
    from nearfar.workflows.options import Options

#: Bytes of the file by default.
SIZE_BYTES = 256 * MIB


def measure(
    path: Path, options: Options, *, size_bytes: int = SIZE_BYTES
) -> Measured[MappedResult]:
    """Measure transfers of one file in the directory ``path``."""
    arguments = {
        "path": str(path),
        "size_bytes": size_bytes,
        "time_s": options.budget_s(30.0),
    }
    with recorded("bench mapped", arguments, options, "mapped") as recording:
        cpu = chosen_cpus(recording.machine, options.cpus)[0]
        inspection = mapped.inspect(str(path), size_bytes, cpu)
        plan = mapped.MappedPlan(str(path), size_bytes, cpu, inspection.accesses)
        result, skipped = mapped.measure(recording.session, plan, options.effort(30.0), inspection)
        recording.keep("mapped", result, skipped)
    return recording.measured(result)
