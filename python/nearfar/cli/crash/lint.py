"""``nearfar crash lint``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nearfar.cli import flags
from nearfar.cli.crash import _flags
from nearfar.errors import ExitCode

if TYPE_CHECKING:
    from nearfar.workflows.linting import Linted


def lint(
    program: _flags.Program,
    recorder: _flags.Recorder = "preload",
    json: flags.Json = None,
    sarif: _flags.Sarif = None,
) -> int:
    """Record a program on persistent memory, and list its missing and needless flushes and logs.

    The pool is the first regular file that PROGRAM maps shared and writable. No checker is needed
    and no crash is tried: the order of stores, flushes, fences and libpmemobj's log calls is
    judged. Errors lose data: stores that are not flushed or fenced, and stores in a transaction
    that it does not log, logs late or logs in part. Notes cost time: flushes of lines that nothing
    was stored into, and ranges that are logged twice. Stores and flushes of libpmem and libpmemobj
    themselves are recorded but not judged. The output of PROGRAM goes to standard error.

    Exits with 1 on an error, and with 3 if none was found but PROGRAM failed or its recording is
    truncated.

    Examples:

        nearfar crash lint -- ./program pool

        nearfar crash lint --sarif findings.sarif -- ./program pool
    """
    from nearfar.workflows.linting import lint as judge

    return _show(judge(program, recorder), json, sarif)


def _show(done: Linted, json_target: str | None, sarif_target: str | None) -> int:
    """Print the result, write the requested files, and return the exit code of the verdict."""
    import json

    from nearfar.report.console import note, print_result, write_json
    from nearfar.report.terminal.lint import findings
    from nearfar.verify import sarif

    result = done.result
    for warning in result.warnings:
        note(warning)
    if "-" not in (json_target, sarif_target):
        print_result(findings(result))
    if json_target:
        write_json(json_target, json.dumps(done.document(), indent=1))
    if sarif_target:
        write_json(sarif_target, json.dumps(sarif.lint(result), indent=1))
    codes = {"violation": ExitCode.VIOLATION, "inconclusive": ExitCode.MACHINE}
    return codes.get(result.verdict, ExitCode.OK)
