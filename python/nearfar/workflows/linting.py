"""Lint persistent code: record a program, and judge the order of its stores and flushes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nearfar.verify.lint import lint as read
from nearfar.verify.recorder import memory_of_judge, record, scratch_folder
from nearfar.workflows.judged import Judged

if TYPE_CHECKING:
    from nearfar.records.choices import StoreRecorder
    from nearfar.verify.lint import LintResult


def lint(program: list[str], recorder: StoreRecorder) -> Judged[LintResult]:
    """Record a program once, and judge what it stored."""
    with scratch_folder() as scratch, memory_of_judge() as memory:
        code = record(program, scratch / "log", recorder, memory)
        result = read(scratch / "log", memory)
    if code:
        result.incomplete = True
        result.warnings.append(f"{program[0]} ended with {code}; only that part is judged")
    return Judged(result, {"verb": "crash lint", "program": program, "recorder": recorder})
