"""Device profiles from what other tools measured: their outputs, read into figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nearfar.errors import BadInputError
from nearfar.files import read_text
from nearfar.profiles.imports import mess, mlc, stream
from nearfar.profiles.imports.found import Found
from nearfar.records.choices import OtherTool
from nearfar.records.profile import Figure, Profile

_READERS = {"mess": mess, "mlc": mlc, "stream": stream}


def import_profile(
    files: Sequence[Path],
    name: str,
    tool: OtherTool | None = None,
    nodes: tuple[int, int] | None = None,
) -> Profile:
    """Make the profile of a memory from outputs of other tools; if several files have the same
    figure, that of the first one is used. ``nodes``: the NUMA nodes of CPUs and memory,
    required for a file that has several.

    Raises BadInputError for a file that is not such an output, or is damaged.
    """
    figures: dict[str, Figure] = {}
    sources: dict[str, str] = {}
    left_out: list[str] = []
    for number, path in enumerate(files):
        text = _whole_text(path)
        kind = tool or _tool_of(text, path)
        found: Found = _READERS[kind].read(text, path, nodes)
        key = kind if kind not in sources else f"{kind}_{number}"
        sources[key] = f"{found.tool}, imported from {path.name}"
        left_out += found.left_out
        for name_of, figure in found.figures.items():
            figures.setdefault(name_of, figure.model_copy(update={"source": key}))
    used = {figure.source for figure in figures.values()}
    return Profile(
        name=name,
        title=f"{name}, as measured by {' and '.join(_READERS[key].TOOL for key in _kinds(used))}",
        description=" ".join(
            [
                "Imported from other tools. What they do not measure is absent.",
                *(f"Left out: {what}." for what in dict.fromkeys(left_out)),
            ]
        ),
        sources={key: source for key, source in sources.items() if key in used},
        figures=figures,
    )


def _whole_text(path: Path) -> str:
    text = read_text(path, "give an output of Mess, Intel MLC or STREAM")
    if text and not text.endswith("\n"):
        raise BadInputError(
            f"{path} may be cut: its last line has no end",
            "copy the whole output again; if it is whole, append a line break",
        )
    return text


def _kinds(sources: set[str]) -> list[str]:
    return [kind for kind in _READERS if any(key.startswith(kind) for key in sources)]


def _tool_of(text: str, path: Path) -> OtherTool:
    found: list[OtherTool] = []
    for kind, reader in _READERS.items():
        if reader.recognizes(text):
            found.append(kind)  # type: ignore[arg-type]
    if not found:
        raise BadInputError(
            f"{path} is not an output of Mess, Intel MLC or STREAM",
            "give memory_curves.csv of Mess, or what mlc or stream printed; name it with --from",
        )
    return found[0]
