"""Lint persistent code: record a program, and judge the order of its stores and flushes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nearfar.verify.interruption import INTERRUPTED, PatientWait
from nearfar.verify.lint import lint as judge_log
from nearfar.verify.recorder import (
    HEAP_FILE,
    explaining_end,
    failure,
    memory_of_judge,
    record,
    scratch_folder,
    unrecorded,
)
from nearfar.verify.reopening import recorded_pool
from nearfar.workflows.crash_result import Judged

if TYPE_CHECKING:
    from nearfar.records.choices import StoreRecorder
    from nearfar.verify.lint import LintResult


def lint(
    program: list[str], recorder: StoreRecorder, heap_bytes: int = 0, pool: str | None = None
) -> Judged[LintResult]:
    """Record a program once, and judge what it stored: into its pool, or its aligned blocks."""
    with scratch_folder() as scratch, memory_of_judge() as memory:
        waiting = PatientWait()
        log = scratch / "log"
        code = record(
            program, log, recorder, memory, heap_bytes=heap_bytes, pool=pool, wait=waiting
        )
        with explaining_end(program, log, recorder, code):
            result = judge_log(log, memory)
        failed = failure(program, log, recorder, code)
        missing = unrecorded(program, log)
        judged = recorded_pool(log)
    result.program_failed = bool(failed)
    result.interrupted = waiting.interrupted
    result.incomplete |= bool(missing) or result.interrupted
    result.warnings += failed + missing
    if result.interrupted:
        result.warnings.append(INTERRUPTED)
    if heap_bytes and judged and not judged.name.startswith(HEAP_FILE):
        result.warnings.append(f"--heap has no effect: {program[0]} maps {judged} first")
    request: dict[str, object] = {"verb": "crash lint", "program": program, "recorder": recorder}
    if heap_bytes:
        request["heap_bytes"] = heap_bytes
    if pool:
        request["pool"] = pool
    return Judged(result, request)
