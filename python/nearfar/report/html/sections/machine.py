"""The machine record, generically: plain facts first, then one table per list."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nearfar.report.html.section import Cell, Context, Section, Table
from nearfar.report.wording import count, format_quantity

#: Position on the page.
PLACE = 230


def section(context: Context) -> Section | None:
    """Return the section, or None if the record has no data on its machine."""
    machine = context.run.machine
    if not machine:
        return None
    facts = list(_facts(machine, ""))
    tables = [Table(["", ""], [[Cell(name), Cell(value)] for name, value in facts], "Facts")]
    tables += sorted(_lists(machine, ""), key=lambda table: table.caption != "Tiers")
    return Section(
        "machine", "The machine", _finding(context), tables=[t for t in tables if t.rows]
    )


def machine_name(machine: dict[str, Any]) -> str:
    """Return the machine's name for a heading: its CPU model."""
    return str(machine.get("processor") or "A machine that the record does not name")


def _finding(context: Context) -> str:
    machine = context.run.machine
    tiers = machine.get("tiers")
    number = len(tiers) if isinstance(tiers, list) else 0
    host = machine.get("virtual_machine")
    where = f", inside a virtual machine ({host})" if host else ""
    return f"{machine_name(machine)}{where}, with {count(number, 'memory tier')}."


def _label(key: str) -> str:
    for ending in ("_bytes_per_s", "_bytes", "_ns"):
        key = key.removesuffix(ending)
    return key.replace("_", " ")


def _text(key: str, value: Any) -> str:
    if value is None or value in ({}, []):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        measured = key.endswith(("_bytes", "_bytes_per_s", "_ns"))
        text = format_quantity(key, value).replace(" ", "\N{NO-BREAK SPACE}")
        return text if measured else f"{value:.10g}"
    if isinstance(value, list):
        return ", ".join(_text(key, member) for member in value)
    if isinstance(value, dict):
        return "; ".join(f"{_label(k)}: {_brief(k, v)}" for k, v in value.items())
    return str(value)


def _brief(key: str, value: Any) -> str:
    """Return a nested member as text; of a provenance, only the origin."""
    if isinstance(value, dict) and "origin" in value:
        return str(value["origin"])
    return _text(key, value)


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(member, dict) for member in value)


def _facts(holder: dict[str, Any], above: str) -> Iterator[tuple[str, str]]:
    for key, value in holder.items():
        if key in ("intervals", "provenance"):
            continue
        if isinstance(value, dict):
            yield from _facts(value, f"{above}{_label(key)}: ")
        elif not _is_table(value) and value not in (None, [], {}):
            yield f"{above}{_label(key)}", _text(key, value)


def _lists(holder: dict[str, Any], above: str) -> Iterator[Table]:
    for key, value in holder.items():
        if isinstance(value, dict):
            yield from _lists(value, f"{above}{_label(key)}: ")
        elif _is_table(value):
            members = [member for member in value if isinstance(member, dict)]
            used = (k for member in members for k, v in member.items() if v not in (None, {}, []))
            keys = list(dict.fromkeys(used))
            rows = [[Cell(_text(k, member.get(k))) for k in keys] for member in members]
            caption = f"{above}{_label(key)}".capitalize()
            yield Table([_label(k) for k in keys], rows, caption, folded=len(rows) > 6)
