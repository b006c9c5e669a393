"""``nearfar bench mapped``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nearfar.cli import flags


@flags.grouped
def mapped(
    path: Annotated[
        Path,
        typer.Option("--path", metavar="DIR", help="Directory of the file, which is unnamed."),
    ] = Path(),
    size: flags.Size = None,
    *,
    shared: flags.Measuring,
) -> None:
    """Compare mmap with pread, pwrite and io_uring on one file.

    Creates and maps a file, and shows its descriptor, the addresses of the mapping, the pages
    obtained, and whether DAX and MAP_SYNC are in effect. Then transfers the same blocks through the
    mapping, by pread and pwrite (buffered, and O_DIRECT), and by io_uring: in sequential and random
    order, cold and warm. Writes end with msync or fdatasync. The file is unnamed, so that
    nothing is left behind and nothing is overwritten.

    A tmpfs bound to a NUMA node (mount -t tmpfs -o mpol=bind:1) provides files in its memory. A
    devdax device has no files and is refused.

    Examples:

        nearfar bench mapped

        nearfar bench mapped --path /mnt/pmem --size 1GiB

        nearfar bench mapped --time 60 --json -
    """
    from nearfar.measure import mapped as measurement
    from nearfar.measure.session import Effort
    from nearfar.report import terminal
    from nearfar.units import MIB, parse_size
    from nearfar.workflows.plans import chosen_cpus
    from nearfar.workflows.recording import recorded

    size_bytes = parse_size(size) if size is not None else 256 * MIB
    budget_s = shared.budget_s(30.0)
    arguments = {"path": str(path), "size_bytes": size_bytes, "time_s": budget_s}
    with recorded("bench mapped", arguments, shared.kept) as recording:
        cpu = chosen_cpus(recording.machine, shared.cpus)[0]
        inspection = measurement.inspect(str(path), size_bytes, cpu)
        plan = measurement.MappedPlan(str(path), size_bytes, cpu, inspection.accesses)
        effort = Effort(budget_s, shared.runs, shared.warmup)
        result, skipped = measurement.measure(recording.session, plan, effort, inspection)
        recording.keep("mapped", result, skipped)
    recording.show(terminal.mapped(result), recording.document(result), shared.json)
