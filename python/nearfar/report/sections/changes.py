"""What changed since the previous run of the same verb on the same machine."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from nearfar.records.run import Run
from nearfar.report.section import Cell, Context, Section, Table
from nearfar.report.walk import Conditions, Quantity, Scalar, numbers
from nearfar.report.wording import count, format_interval, format_quantity, pages_name, when

#: Conditions that may differ between two runs of the same measurement.
_FREE = frozenset({
    "cpu", "cpus", "path", "size_bytes", "effective_last_cache_bytes",
    "effective_last_cache_source", "reported_last_cache_bytes",
})  # fmt: skip

#: Figures about the check of the results, not about the machine.
_NOT_COMPARED = frozenset({"worst_error"})

#: Changes shown unfolded, the largest first.
_SHOWN = 12

_Identity = tuple[str, str, Conditions, str]


@dataclass(frozen=True)
class Change:
    """One figure in both runs."""

    now: Quantity
    before: Quantity

    def ratio(self) -> float:
        """Now over before."""
        return self.now.value / self.before.value if self.before.value else math.inf

    def agree(self) -> bool | None:
        """Whether the intervals overlap; None where one of them is not recorded."""
        if self.now.interval is None or self.before.interval is None:
            return None
        (low, high), (past_low, past_high) = self.now.interval, self.before.interval
        return low <= past_high and past_low <= high


def section(context: Context) -> Section | None:
    """The section, or None where there is no earlier run to compare with."""
    if not context.previous:
        return None
    path, before = max(context.previous, key=lambda pair: pair[1].started)
    changes = list(compare(context.run, before))
    if not changes:
        finding = (
            f"No figure of the run of {when(before.started)} was measured again in the same way."
        )
        return Section("changes", "What changed", finding)
    moved = sorted(
        (c for c in changes if c.agree() is False), key=lambda c: -abs(math.log(c.ratio() or 1e-9))
    )
    rest = [change for change in changes if change.agree() is not False]
    tables = [
        _table(moved[:_SHOWN], "Figures whose intervals lie apart, largest change first", False),
        _table(moved[_SHOWN:], "Smaller changes, intervals apart", True),
        _table(rest, "Figures that agree, or have no interval", True),
    ]
    return Section(
        "changes", "What changed", _finding(before, changes, moved),
        tables=[table for table in tables if table.rows], notes=_notes(context, before, str(path)),
    )  # fmt: skip


def compare(now: Run, before: Run) -> Iterator[Change]:
    """Pairs of figures that were taken under the same conditions."""
    past = {_identity(q): q for q in numbers(before.sections) if isinstance(q, Quantity)}
    for quantity in numbers(now.sections):
        if isinstance(quantity, Quantity) and quantity.key not in _NOT_COMPARED:
            other = past.pop(_identity(quantity), None)
            if other is not None:
                yield Change(quantity, other)


def _identity(quantity: Quantity) -> _Identity:
    held = tuple(pair for pair in quantity.conditions if pair[0] not in _FREE)
    origin = quantity.provenance.origin.value if quantity.provenance else ""
    threads = next((str(v).count(",") for k, v in quantity.conditions if k == "cpus"), 0)
    path = quantity.path.replace("/sweep", "")  # the run at the top may be one of its sweep
    return path, quantity.key, (*held, ("threads of cpus", threads)), origin


def _finding(before: Run, changes: list[Change], moved: list[Change]) -> str:
    since = (
        f"Since the run of {when(before.started)}, {count(len(changes), 'figure')} can be compared"
    )
    if not moved:
        return f"{since}; all agree within their intervals."
    top = moved[0]
    return (
        f"{since}, and {len(moved)} differ{'s' * (len(moved) == 1)} by more than their intervals. "
        f"The largest: {name(top.now)} is {top.ratio():.2f} times what it was."
    )


def name(quantity: Quantity) -> str:
    """A quantity in a few words: what it is, and what tells it from its neighbours."""
    path = [part for part in quantity.path.split("/") if part not in _LISTS]
    what = quantity.key.removesuffix("_bytes_per_s").removesuffix("_ns").replace("_", " ")
    heading = " ".join(path if what in path else [*path, what])
    told = [_condition(key, value) for key, value in quantity.conditions if key not in _UNTOLD]
    return f"{heading}: {', '.join(dict.fromkeys(text for text in told if text))}"


_LISTS = frozenset({"curves", "points", "ratios", "sweep"})
_UNTOLD = frozenset({
    "effective_last_cache_bytes", "effective_last_cache_source", "reported_last_cache_bytes",
    "size_bytes", "worst_error", "queue_depth", "file_system", "cpu", "path",
})  # fmt: skip


def _condition(key: str, value: Scalar) -> str:
    if isinstance(value, bool):
        return ""
    if key == "cpus":
        return count(str(value).count(",") + 1, "thread")
    if key == "threads":
        return count(int(value), "thread")
    if key == "pages":
        return pages_name(str(value))
    if key.endswith("_bytes") and isinstance(value, int | float):
        return f"{key.removesuffix('_bytes').replace('_', ' ')} {format_quantity(key, value)}"
    return f"against {value}" if key == "against" else str(value)


def _table(changes: list[Change], caption: str, folded: bool) -> Table:
    verdicts = {
        True: Cell("overlap"),
        False: Cell("apart", tone="bad"),
        None: Cell("none recorded"),
    }
    rows = [
        [
            Cell(name(change.now)), _figure(change.before), _figure(change.now),
            Cell(f"{change.ratio():.2f} ×"), verdicts[change.agree()],
        ]
        for change in changes
    ]  # fmt: skip
    columns = ["Figure", "Before", "Now", "Ratio", "Intervals"]
    return Table(columns, rows, caption, frozenset({1, 2, 3}), folded)


def _figure(quantity: Quantity) -> Cell:
    interval = format_interval(quantity.key, *quantity.interval) if quantity.interval else ""
    origin = quantity.provenance.origin if quantity.provenance else None
    return Cell(format_quantity(quantity.key, quantity.value), interval, origin)


def _notes(context: Context, before: Run, path: str) -> list[str]:
    notes = [
        f"Compared with {path}. Array and file sizes may differ. Of many unchanged figures a few "
        "lie apart by chance; a whole group that moved together is a change."
    ]
    for run, which in ((before, "earlier"), (context.run, "present")):
        if run.noise and run.noise.noisy:
            notes.append(f"The {which} run was too noisy: its figures prove no change.")
    if before.nearfar_version != context.run.nearfar_version:
        notes.append(
            f"Versions differ: {before.nearfar_version} then, {context.run.nearfar_version} now."
        )
    return notes
