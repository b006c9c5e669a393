"""``nearfar bench mapped``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nearfar.cli import options


@options.grouped
def mapped(
    path: Annotated[
        Path,
        typer.Option(
            "--path", metavar="FILE|DIR", help="File to make and remove again, or its directory."
        ),
    ] = Path("nearfar-mapped.tmp"),
    size: options.Size = None,
    *,
    shared: options.Measuring,
) -> None:
    """A file read and written through a mapping, against the classic calls.

    Makes a file, maps it, and shows its descriptor, the addresses of the mapping, the pages
    obtained, and whether DAX and MAP_SYNC hold. Then moves the same blocks through the mapping,
    by pread and pwrite (buffered, and O_DIRECT), and by io_uring: sequentially and in a random
    order, cold and warm. Writes end with msync or fdatasync. The file has no name while it is
    used, so nothing is left behind, and a file that exists is never overwritten.

    Memory of a NUMA node has files once a tmpfs is bound to it (mount -t tmpfs -o mpol=bind:1); a
    devdax device has none and is refused.

    Examples:

        nearfar bench mapped

        nearfar bench mapped --path /mnt/pmem/probe --size 1GiB

        nearfar bench mapped --time 60 --json -
    """
    from nearfar.cli.plans import chosen_cpus
    from nearfar.cli.recording import recorded
    from nearfar.measure import mapped as measurement
    from nearfar.measure.session import Effort
    from nearfar.report import text
    from nearfar.units import MIB, parse_size

    size_bytes = parse_size(size) if size else 256 * MIB
    budget_s = shared.budget_s(30.0)
    arguments = {"path": str(path), "size_bytes": size_bytes, "time_s": budget_s}
    with recorded("bench mapped", arguments, shared.kept) as recording:
        cpu = chosen_cpus(recording.machine, shared.cpus)[0]
        inspection = measurement.inspect(str(path), size_bytes, cpu)
        plan = measurement.MappedPlan(str(path), size_bytes, cpu, inspection.accesses)
        effort = Effort(budget_s, shared.runs, shared.warmup)
        result, skipped = measurement.measure(recording.session, plan, effort, inspection)
        recording.keep("mapped", result, skipped)
    recording.show(text.mapped(result), recording.document(result), shared.json)
