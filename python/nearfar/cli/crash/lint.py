"""``nearfar crash lint``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nearfar.cli import flags
from nearfar.cli.crash import _exploring
from nearfar.cli.crash.run import Recorder
from nearfar.errors import ExitCode

if TYPE_CHECKING:
    from nearfar.verify.lint import LintResult


def lint(
    program: Annotated[
        list[str], typer.Argument(metavar="-- PROGRAM ARGS", help="Program to record, run once.")
    ],
    recorder: Annotated[
        Recorder, typer.Option("--recorder", help="For any program; or for one compiled for it.")
    ] = Recorder.PRELOAD,
    json: flags.Json = None,
    sarif: _exploring.Sarif = None,
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
    import tempfile
    from pathlib import Path

    from nearfar.verify.lint import lint as judge
    from nearfar.verify.recorder import record

    with tempfile.TemporaryDirectory(prefix="nearfar-crash-") as made:
        log = Path(made) / "log"
        code = record(program, log, recorder.value)
        result = judge(log)
    if code:
        result.incomplete = True
        result.warnings.append(f"{program[0]} ended with {code}; only that part is judged")
    return _show(result, {"program": program, "recorder": recorder.value}, json, sarif)


def _show(
    result: LintResult,
    request: dict[str, object],
    json_target: str | None,
    sarif_target: str | None,
) -> int:
    """Print the result, write the requested files, and return the exit code of the verdict."""
    import json

    from nearfar import __version__
    from nearfar.report.console import note, print_result, write_json
    from nearfar.report.terminal.lint import findings
    from nearfar.verify import sarif

    for warning in result.warnings:
        note(warning)
    if "-" not in (json_target, sarif_target):
        print_result(findings(result))
    if json_target:
        document = {**result.document(), "verb": "crash lint", **request}
        document["nearfar_version"] = __version__
        write_json(json_target, json.dumps(document, indent=1))
    if sarif_target:
        write_json(sarif_target, json.dumps(sarif.lint(result), indent=1))
    codes = {"violation": ExitCode.VIOLATION, "inconclusive": ExitCode.MACHINE}
    return codes.get(result.verdict, ExitCode.OK)
