"""The machine: a picture, the latency between its nodes, its tiers, then all other facts of the
record, one table per list."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nearfar.machine.model import Machine, Tier
from nearfar.records.results import LatencyResult
from nearfar.report.charts.topology import topology_figure
from nearfar.report.html import headline
from nearfar.report.html.section import Cell, Context, Section, Table
from nearfar.report.html.sections._nodes import NodeMeasurements, latency_matrix
from nearfar.report.wording import HUGE_PAGES, count, format_quantity, plain_tier, say
from nearfar.units import format_size

#: Members of a record that describe its numbers.
_ABOUT_NUMBERS = ("intervals", "provenance")


def section(context: Context) -> Section | None:
    """Return the section, or None if the record has no data on its machine."""
    machine = context.run.machine
    if not machine:
        return None
    known = _validated(machine)
    latency = context.run.sections.latency
    measured = NodeMeasurements(context.run.sections.matrix, latency)
    facts = [[Cell(name), Cell(value)] for name, value in _facts(machine, "")]
    tables = [
        *([*latency_matrix(known, measured), _tiers(known.tiers)] if known else []),
        Table(["", ""], facts, "Facts", folded=True),
        *_lists(machine, ""),
    ]
    return Section(
        "machine",
        "The machine",
        _finding(context),
        [topology_figure(known, _latencies(latency))] if known and known.cpus else [],
        [table for table in tables if table.rows],
    )


def _validated(machine: dict[str, Any]) -> Machine | None:
    """Return the machine of a record; None if the record is from another version or incomplete."""
    from pydantic import ValidationError

    try:
        return Machine.model_validate(machine)
    except ValidationError:
        return None


def _latencies(result: LatencyResult | None) -> dict[str, str]:
    """Return the measured latency of each tier in words, of huge pages if they were measured."""
    found: dict[str, str] = {}
    curves = result.curves if result else []
    for curve in sorted(curves, key=lambda curve: curve.pages not in HUGE_PAGES):
        found.setdefault(plain_tier(curve.tier), say(headline.largest(curve), "latency_ns"))
    return found


def _tiers(tiers: list[Tier]) -> Table:
    rows = [
        [
            Cell(tier.spec, tier.alias or "", code=True),
            Cell("–" if tier.capacity_bytes is None else format_size(tier.capacity_bytes)),
            Cell(tier.medium),
            Cell(tier.persistence, tier.persistence_reason),
        ]
        for tier in tiers
    ]
    return Table(["Tier", "Capacity", "Medium", "Persistence"], rows, "Tiers", stacked=True)


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
    return key.replace("_", " ").replace("cpus", "CPUs")


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
        if key in _ABOUT_NUMBERS:
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
            used = (
                k
                for member in members
                for k, v in member.items()
                if v not in (None, {}, []) and k not in _ABOUT_NUMBERS
            )
            keys = list(dict.fromkeys(used))
            rows = [[Cell(_text(k, member.get(k))) for k in keys] for member in members]
            title = f"{above}{_label(key)}"
            caption = title[0].upper() + title[1:]
            yield Table(
                [_label(k) for k in keys],
                rows,
                caption,
                folded=True,
            )
