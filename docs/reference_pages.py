"""Reference pages of the verbs, generated from the command tree of the tool.

Sphinx calls :func:`write` before it reads its sources (``conf.py``). A page has the text of
``--help``, in HTML and as a man page.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import typer

from nearfar.cli.app import app

GROUP_OPTIONS = "[OPTIONS] VERB …"


def verbs(command: Any, path: tuple[str, ...] = ("nearfar",)) -> Iterator[tuple[str, Any]]:
    """Return every command under ``command`` by its full name, groups before their members."""
    yield " ".join(path), command
    for name, below in sorted(getattr(command, "commands", {}).items()):
        yield from verbs(below, (*path, name))


def file_name(verb: str) -> str:
    """Return the name of the page of a verb, and of its man page."""
    return verb.replace(" ", "-")


def option(parameter: Any) -> str:
    """Return one entry of the list of options: a term and its text."""
    names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    value = "" if parameter.is_flag else f" *{parameter.metavar or _kind(parameter)}*"
    notes = ["may be repeated"] if parameter.multiple else []
    default = getattr(parameter.default, "value", parameter.default)
    if default not in (None, False, True, ()) and parameter.show_default:
        notes.append(f"default: `{default}`")
    if parameter.required:
        notes.append("required")
    text = " ".join((parameter.help or "").split())
    return f"{names}{value}\n: {text}{' (' + '; '.join(notes) + ')' if notes else ''}\n"


def _kind(parameter: Any) -> str:
    """Return the values of an option without a metavar: the choices, or its name."""
    annotation = parameter.type_descriptor.annotation
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return "|".join(str(choice.value) for choice in annotation)
    return str(parameter.name).upper()


def usage(verb: str, command: Any) -> str:
    """Return the usage line of the verb."""
    if hasattr(command, "commands"):
        return f"{verb} {GROUP_OPTIONS}"
    arguments = [p for p in command.params if not p.opts[0].startswith("-")]
    shown = " ".join(p.metavar or p.name.upper() for p in arguments)
    return f"{verb} [OPTIONS] {shown}".rstrip()


def page(verb: str, command: Any) -> str:
    """Return the page of one verb as MyST Markdown."""
    text = [f"# {verb}", "", "```text", usage(verb, command), "```", "", command.help or "", ""]
    below = getattr(command, "commands", {})
    if below:
        text += ["## Verbs", ""]
        text += [
            f"[`{verb} {name}`]({file_name(f'{verb} {name}')}.md)\n: {_first_line(one)}\n"
            for name, one in sorted(below.items())
        ]
    options = [p for p in command.params if p.opts[0].startswith("-") and not p.hidden]
    if options:
        text += ["## Options", "", *map(option, options)]
    if command.epilog:
        text += [command.epilog, ""]
    return "\n".join(text)


def _first_line(command: Any) -> str:
    return (command.help or "").split("\n\n")[0].replace("\n", " ")


def write(folder: Path) -> list[tuple[str, str, str]]:
    """Write every verb's page into ``folder``; return page name, verb and summary line of each."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("nearfar*.md"):
        old.unlink()
    written = []
    for verb, command in verbs(typer.main.get_command(app)):
        name = file_name(verb)
        (folder / f"{name}.md").write_text(page(verb, command))
        written.append((name, verb, _first_line(command).rstrip(".")))
    (folder / "index.md").write_text(_index([name for name, _, _ in written]))
    return written


def _index(names: list[str]) -> str:
    pages = "\n".join(names)
    text = "The text of `--help` for every verb."
    return f"# Verbs\n\n{text}\n\n```{{toctree}}\n:maxdepth: 1\n\n{pages}\n```\n"
