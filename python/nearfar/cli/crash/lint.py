"""``nearfar crash lint``."""

from __future__ import annotations

from nearfar.cli import flags
from nearfar.cli.crash import _flags


def lint(
    program: _flags.Program,
    recorder: _flags.Recorder = "preload",
    json: flags.Json = None,
    sarif: _flags.Sarif = None,
) -> int:
    """Record a program on persistent memory, and list its missing and needless flushes and logs.

    The pool is the first regular file that PROGRAM maps shared and writable. No checker is needed
    and no crash is tried: the order of stores, flushes, fences and libpmemobj's log calls is
    judged. Errors lose data: stores that are not flushed or fenced, stores in a transaction that it
    does not log, logs late or logs in part, stores to freed objects, and transactions that do not
    end. Notes cost time: flushes of lines that nothing was stored into, and ranges that are logged
    twice. Stores and flushes of libpmem and libpmemobj themselves are followed but not judged. The
    output of PROGRAM goes to standard error.

    Exits with 1 on an error, and with 3 if none was found but PROGRAM failed or its recording is
    truncated.

    Examples:

        nearfar crash lint -- ./program pool

        nearfar crash lint --sarif findings.sarif -- ./program pool
    """
    from nearfar.report.terminal.lint import findings
    from nearfar.verify import sarif as located
    from nearfar.workflows.linting import lint as judge

    return _flags.show(judge(program, recorder), findings, located.lint, json, sarif)
