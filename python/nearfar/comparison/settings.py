"""Settings that differ: the memory, placement or engine of an answer, the threads of a run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from nearfar.comparison.changes import SettingChange
from nearfar.records.numbers import Quantity, SettingNumber
from nearfar.units import format_size

#: The key of the number of threads, which follows from the CPUs.
THREADS = "threads"
#: Conditions that a measurement finds on its machine.
MEASURED = frozenset(
    {
        "cpu",
        "cpus",
        "path",
        "effective_last_cache_bytes",
        "effective_last_cache_source",
        "reported_last_cache_bytes",
        "chaser_cpu",
        "traffic_cpus",
        "run_time_s",
        "stalls",
    }
)
#: Conditions that no user chose: a measurement found them, or they follow from other conditions.
NOT_CHOSEN = MEASURED | {"in_cache", "oversubscribed"}

_Numbers = Iterable[Quantity | SettingNumber]


def changed_settings(now: _Numbers, before: _Numbers) -> list[SettingChange]:
    """Return the text settings that have one value on each side, and not the same one.

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


def changed_conditions(now: Iterable[Quantity], before: Iterable[Quantity]) -> list[SettingChange]:
    """Return the chosen conditions that have one value on each side, and not the same one."""
    present, past = _conditions(now), _conditions(before)
    found = []
    for key, values in present.items():
        others = past.get(key, set())
        if len(values) == len(others) == 1 and values != others:
            (value,), (other,) = values, others
            found.append(SettingChange("", key, _text(key, value), _text(key, other)))
    return found


def threads_of(quantity: Quantity) -> int:
    """The number of CPUs that a figure was measured on; 0 if it has none."""
    cpus = dict(quantity.conditions).get("cpus")
    return 0 if cpus is None else str(cpus).count(",") + 1


def _conditions(quantities: Iterable[Quantity]) -> dict[str, set[object]]:
    found: dict[str, set[object]] = defaultdict(set)
    for quantity in quantities:
        for key, value in quantity.conditions:
            if key not in NOT_CHOSEN:
                found[key].add(value)
        found[THREADS].add(threads_of(quantity))
    return found


def _text(key: str, value: object) -> str:
    return format_size(value) if key.endswith("_bytes") and isinstance(value, int) else str(value)
