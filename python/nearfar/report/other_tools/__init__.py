"""Advice in the form that other tools for placement take: scripts for a shell.

Each file of this package has one tool, as a function from an answer to the lines of a script. What
a tool cannot express is a comment, or the reason of a refusal.
"""

from __future__ import annotations

from collections.abc import Callable

from rich.text import Text

from nearfar.errors import BadInputError
from nearfar.records.advice import AdviceResult
from nearfar.records.choices import PlacementTool
from nearfar.report.other_tools import damo, memkind, numactl, weighted_interleave

_WRITERS: dict[PlacementTool, Callable[[AdviceResult], list[str]]] = {
    "damo": damo.lines,
    "numactl": numactl.lines,
    "weighted-interleave": weighted_interleave.lines,
    "memkind": memkind.lines,
}
#: Tools that place a program from its start: their script starts a running process again.
_STARTING: tuple[PlacementTool, ...] = ("numactl", "weighted-interleave")


def require_tool(tool: PlacementTool, *, has_program: bool, is_running: bool = False) -> None:
    """Raise BadInputError if the tool cannot place what is observed: a program, a running process
    or a file of samples."""
    if has_program or tool == "damo" or (is_running and tool in _STARTING):
        return
    raise BadInputError(
        f"{tool} cannot place {'a running process' if is_running else 'a file of samples'}",
        "use --emit damo or `nearfar place --pid`, or name a program after --",
    )


def script_of(tool: PlacementTool) -> Callable[[AdviceResult], Text]:
    """Converter of an answer into a tool's script. It raises BadInputError if the answer has
    nothing for the tool."""

    def script(result: AdviceResult) -> Text:
        return Text("\n".join(_WRITERS[tool](result)), no_wrap=True)

    return script
