"""``nearfar crash lint``."""

from __future__ import annotations

from typing import Annotated

from nearfar.cli import flags
from nearfar.cli.crash import _shared
from nearfar.errors import BadInputError
from nearfar.units import parse_size

_SMALLEST_HEAP, _LARGEST_HEAP = 4 << 10, 64 << 30  # a page; what the recorder can map

Heap = Annotated[
    str | None,
    flags.size("--heap", "The pool is the blocks of posix_memalign; SIZE: bytes of all of them."),
]


def lint(
    program: _shared.Program,
    pool: _shared.Pool = None,
    recorder: _shared.Recorder = "preload",
    heap: Heap = None,
    json: flags.Json = None,
    sarif: _shared.Sarif = None,
) -> int:
    """Record a program on persistent memory, and list its missing and needless flushes and logs.

    The pool is the first regular file that PROGRAM maps shared and writable, or --pool. No checker
    is needed and no crash is tried: the order of stores, flushes, fences and libpmemobj's log calls
    is judged. Errors lose data: stores that are not flushed or fenced; stores in a transaction
    whose range is not logged, logged too late or logged only in part; stores to freed objects; and
    transactions that do not end. Notes cost time: flushes of lines that nothing was stored into,
    and ranges that are logged twice. One note may be intended: a store in a transaction that is
    flushed and not logged. What libpmem and libpmemobj store and flush for themselves is not
    judged. The output of PROGRAM goes to standard error.

    With --heap, blocks of posix_memalign, aligned_alloc and memalign are the pool, for programs
    that flush such blocks and map no file.

    Exits with 1 on an error, and with 3 if none was found but PROGRAM failed or its recording is
    truncated. Ctrl-C ends PROGRAM, what was recorded until then is judged, and the exit code is
    130.

    Examples:

        nearfar crash lint -- ./program pool

        nearfar crash lint --sarif findings.sarif -- ./program pool

        nearfar crash lint --heap 256MiB -- ./tree 1000
    """
    from nearfar.report.terminal.lint import findings
    from nearfar.verify import sarif as sarif_documents
    from nearfar.workflows.crash_lint import lint as judge

    if heap and pool:
        raise BadInputError("--heap and --pool exclude each other", "leave one of them out")
    done = judge(program, recorder, _heap_bytes(heap) if heap else 0, pool)
    return _shared.show(done, findings, sarif_documents.lint, json, sarif)


def _heap_bytes(text: str) -> int:
    size = parse_size(text)
    if not _SMALLEST_HEAP <= size <= _LARGEST_HEAP:
        raise BadInputError(
            f"--heap {text}: the heap has 4KiB to 64GiB",
            "give the bytes of all blocks that the program allocates",
        )
    return size
