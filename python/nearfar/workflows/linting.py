"""Lint persistent code: record a program, and judge the order of its stores and flushes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nearfar.verify.lint import lint as read
from nearfar.verify.recorder import memory_of_judge, record, scratch_folder, unrecorded
from nearfar.workflows.judged import Judged

if TYPE_CHECKING:
    from nearfar.records.choices import StoreRecorder
    from nearfar.verify.lint import LintResult


def lint(program: list[str], recorder: StoreRecorder, heap_bytes: int = 0) -> Judged[LintResult]:
    """Record a program once, and judge what it stored: into its pool, or its aligned blocks."""
    with scratch_folder() as scratch, memory_of_judge() as memory:
        code = record(program, scratch / "log", recorder, memory, heap_bytes=heap_bytes)
        result = read(scratch / "log", memory)
        missing = unrecorded(program, scratch / "log", code)
    result.incomplete |= bool(missing)
    result.warnings += missing
    request: dict[str, object] = {"verb": "crash lint", "program": program, "recorder": recorder}
    if heap_bytes:
        request["heap_bytes"] = heap_bytes
    return Judged(result, request)
