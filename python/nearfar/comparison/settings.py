"""Settings of two answers that differ: which memory, placement or engine each side has."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from nearfar.comparison.changes import SettingChange
from nearfar.records.walk import Quantity, Setting

_Numbers = Iterable[Quantity | Setting]


def changed_settings(now: _Numbers, before: _Numbers) -> list[SettingChange]:
    """Return settings in words with one value on each side, and different ones.

    A setting of an answer is a condition of all numbers below it; it is listed once.
    """
    present, past = _settings(now), _settings(before)
    found: dict[tuple[str, str, str], SettingChange] = {}
    for (path, key), values in present.items():
        others = past.get((path, key), set())
        if len(values) == len(others) == 1 and values != others:
            (value,), (other,) = values, others
            found.setdefault((key, value, other), SettingChange(path, key, value, other))
    return list(found.values())


def _settings(numbers: _Numbers) -> dict[tuple[str, str], set[str]]:
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for number in numbers:
        for key, value in number.conditions:
            if isinstance(value, str):
                found[number.path, key].add(value)
    return found
