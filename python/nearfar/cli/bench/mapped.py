"""``nearfar bench mapped``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from nearfar.cli import flags
from nearfar.cli.output import show_measured

Directory = Annotated[
    Path, flags.text("--path", "DIR", "Directory of the (unnamed) temporary file.")
]


@flags.expand_dataclasses
def mapped(
    path: Directory = Path(),
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
    from nearfar.report.terminal import results
    from nearfar.units import parse_size
    from nearfar.workflows.bench import mapped as workflow

    size_bytes = parse_size(size) if size is not None else workflow.SIZE_BYTES
    done = workflow.measure(path, shared.options, size_bytes=size_bytes)
    show_measured(done, results.mapped(done.result), shared.output)
