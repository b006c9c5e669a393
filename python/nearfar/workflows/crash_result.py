"""The result of a ``crash`` verb with its request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from nearfar.verify.findings import Exploration
from nearfar.verify.lint import LintResult

Result = TypeVar("Result", Exploration, LintResult)


@dataclass(frozen=True)
class Judged(Generic[Result]):
    """A result that has a verdict, and what was requested."""

    result: Result
    request: dict[str, object]

    def document(self) -> dict[str, Any]:
        """The JSON document of the verb."""
        from nearfar import __version__

        return {**self.result.document(), **self.request, "nearfar_version": __version__}
