"""Fit a contention model (``contention``) to the rows of a competition table: one law a side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from nearfar import student
from nearfar.errors import BadInputError
from nearfar.model import forms, tables
from nearfar.model.contention import MAX_THREADS, ContentionModel, ContentionRow, Side
from nearfar.model.contention_file import complaint

COLUMNS = ("near_threads", "far_threads", "near_MBps", "far_MBps")
#: The queue's fraction without rows below full occupancy, with its interval.
_UNKNOWN_QUEUE = (0.5, 0.0, 1.0)


def read_measured(path: str | Path) -> list[ContentionRow]:
    """Rows of a competition table. Raises BadInputError that names the cell."""
    rows = tables.read_rows(path, COLUMNS)
    rows = tables.without_repeats(rows, COLUMNS[:2], COLUMNS[2:])
    return [
        ContentionRow(
            near_threads=_threads(row, "near_threads"),
            far_threads=_threads(row, "far_threads"),
            near_bandwidth_bytes_per_s=row.number_of("near_MBps") * tables.BYTES_PER_MB,
            far_bandwidth_bytes_per_s=row.number_of("far_MBps") * tables.BYTES_PER_MB,
        )
        for row in rows
    ]


def _threads(row: tables.Row, column: str) -> int:
    threads = row.count_of(column)
    if threads > MAX_THREADS // 2:
        row.refuse(column, f"{threads} threads are more than {MAX_THREADS // 2}")
    return threads


def fit(measured: Sequence[ContentionRow]) -> ContentionModel:
    """Fit both sides. Raises BadInputError with fewer than three rows at full occupancy.

    Rows far from any law are rejected too: the speeds or their intervals exceed all bounds.
    """
    most = max(row.near_threads + row.far_threads for row in measured)
    full = [row for row in measured if row.near_threads + row.far_threads == most]
    if len(full) < forms.MIN_ROWS:
        raise BadInputError(
            f"{len(full)} of {len(measured)} rows use all {most} threads (near_threads + "
            f"far_threads), and a fit needs {forms.MIN_ROWS}",
            f"measure other splits of {most} threads, such as one far thread, half, all but one",
        )
    below = [row for row in measured if row not in full]
    try:
        return ContentionModel(
            full_threads=most,
            rows=list(measured),
            near=_fit_side(_near, full, below, most),
            far=_fit_side(_far, full, below, most),
        )
    except ValidationError as error:
        raise BadInputError(
            f"no law fits these rows: {complaint(error)}",
            "look for a row whose speed is far off, and measure it again",
        ) from None


_Pick = Callable[[ContentionRow], tuple[int, float]]


def _near(row: ContentionRow) -> tuple[int, float]:
    return row.near_threads, row.near_bandwidth_bytes_per_s / row.near_threads


def _far(row: ContentionRow) -> tuple[int, float]:
    return row.far_threads, row.far_bandwidth_bytes_per_s / row.far_threads


def _fit_side(
    pick: _Pick, full: Sequence[ContentionRow], below: Sequence[ContentionRow], most: int
) -> Side:
    threads, speeds = zip(*(pick(row) for row in full), strict=True)
    form = forms.choose(threads, speeds)
    one = np.abs(forms.errors_left_out(forms.choose, threads, speeds, 1))
    two = (
        np.abs(forms.errors_left_out(forms.choose, threads, speeds, 2))
        if len(full) - 2 >= forms.MIN_ROWS
        else None
    )
    spare = max(1, len(full) - len(form.coefficients))
    queueing = _fit_queue(form, pick, below, most)
    return Side(
        form=form.name,
        coefficients=list(form.coefficients),
        half_width=student.quantile(0.975, spare) * float(np.sqrt(np.mean(one**2))),
        leave_one_out_mean=float(one.mean()),
        leave_one_out_worst=float(one.max()),
        leave_two_out_mean=None if two is None else float(two.mean()),
        queueing=queueing[0],
        queueing_low=queueing[1],
        queueing_high=queueing[2],
    )


def _fit_queue(
    form: forms.Form, pick: _Pick, below: Sequence[ContentionRow], most: int
) -> tuple[float, float, float]:
    """Queueing fraction with its interval: least squares over rows below full occupancy."""
    if not below:
        return _UNKNOWN_QUEUE
    idle, saved = [], []
    for row in below:
        threads, speed = pick(row)
        idle.append(1 - (row.near_threads + row.far_threads) / most)
        saved.append(1 - form(threads) / speed)
    single = [min(1.0, max(0.0, s / i)) for s, i in zip(saved, idle, strict=True)]
    best = float(np.dot(saved, idle) / np.dot(idle, idle))
    best = min(max(single), max(min(single), best))
    return best, min(single), max(single)
