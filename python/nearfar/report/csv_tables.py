"""A JSON document of a result as CSV: one row for each object of its lists.

The column ``table`` names the list. The first row, whose table is ``result``, has the values that
are in no list. Keys of nested objects are joined with a dot. A value with a 95 % interval has two
more columns, ``…_low`` and ``…_high``; a value with a provenance has ``…_origin``. If a row
contains a list, the rows of this list repeat the values of the row. Numbers are those of the JSON
document, in the unit that ends their key.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any

_Row = dict[str, object]
#: Keys without a column: facts about the whole run, and the objects that become columns of values.
_LEFT_OUT = frozenset({"machine", "arguments", "noise", "provenance", "intervals"})


def csv_of(document: Mapping[str, Any]) -> str:
    """Return the CSV text. The header has the columns of all rows, in order of appearance."""
    rows = list(_rows("result", document, {}))
    header = list(dict.fromkeys(key for row in rows for key in row))
    out = io.StringIO()
    writer = csv.DictWriter(out, header, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _rows(table: str, found: Mapping[str, Any], outer: _Row) -> Iterator[_Row]:
    own = dict(_values(found, ""))
    if own:
        yield {"table": table, **outer, **own}
    inherited = {} if table == "result" else {**outer, **own}
    for name, items in _lists(found, ""):
        for item in items:
            yield from _rows(name if table == "result" else f"{table}.{name}", item, inherited)


def _values(found: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, object]]:
    """Yield column and value of everything that is not a list of objects."""
    intervals, provenance = found.get("intervals") or {}, found.get("provenance") or {}
    for key, value in found.items():
        name = f"{prefix}{key}"
        if key in _LEFT_OUT or value is None:
            continue
        if isinstance(value, Mapping):
            yield from _values(value, f"{name}.")
        elif not isinstance(value, list):
            yield name, value
            if key in intervals:
                yield f"{name}_low", intervals[key][0]
                yield f"{name}_high", intervals[key][1]
            if key in provenance:
                origin = provenance[key]  # a text in documents of the crash and pool verbs
                yield f"{name}_origin", origin if isinstance(origin, str) else origin["origin"]
        elif not _is_table(value):
            yield name, "; ".join(map(str, value))


def _lists(found: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    for key, value in found.items():
        if key in _LEFT_OUT:
            continue
        if isinstance(value, Mapping):
            yield from _lists(value, f"{prefix}{key}.")
        elif isinstance(value, list) and _is_table(value):
            yield f"{prefix}{key}", value


def _is_table(value: list[Any]) -> bool:
    return bool(value) and all(isinstance(item, Mapping) for item in value)
