"""Lint persistent code: record a program, and judge the order of its stores and flushes."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nearfar.verify.lint import lint as judge
from nearfar.verify.recorder import record

if TYPE_CHECKING:
    from nearfar.records.choices import StoreRecorder
    from nearfar.verify.lint import LintResult


@dataclass(frozen=True)
class Linted:
    """The findings in one run of a program, and what was requested."""

    result: LintResult
    program: list[str]
    recorder: StoreRecorder

    def document(self) -> dict[str, Any]:
        """The JSON document of the verb."""
        from nearfar import __version__

        return {
            **self.result.document(),
            "verb": "crash lint",
            "program": self.program,
            "recorder": self.recorder,
            "nearfar_version": __version__,
        }


def lint(program: list[str], recorder: StoreRecorder) -> Linted:
    """Record a program once, and judge what it stored."""
    with tempfile.TemporaryDirectory(prefix="nearfar-crash-") as made:
        log = Path(made) / "log"
        code = record(program, log, recorder)
        result = judge(log)
    if code:
        result.incomplete = True
        result.warnings.append(f"{program[0]} ended with {code}; only that part is judged")
    return Linted(result, program, recorder)
