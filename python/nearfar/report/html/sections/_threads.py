"""Parts that the two sections on bandwidth by threads share."""

from __future__ import annotations

from collections.abc import Sequence

from nearfar.records.figures import FigureModel
from nearfar.report.html.section import Figure
from nearfar.report.wording import count, format_quantity, origin_mark, origins

#: With more thread counts than this, lines over threads are drawn; with fewer, rows.
MAX_ROWS_OF_A_KERNEL = 3

OVERSUBSCRIBED = "Hollow points: more threads than CPUs."
IN_CACHE = (
    "The working set is smaller than four times the last cache: part of the traffic never "
    "reached memory (in_cache)."
)

ThreadPoint = tuple[str, int, bool, FigureModel]


def by_threads(points: Sequence[ThreadPoint], key: str, caption: str) -> Figure:
    """Return kernels by number of threads; ``points``: kernel, threads, oversubscribed, figure."""
    from nearfar.report.charts.drawing import draw
    from nearfar.report.charts.rows import Bar, Dot, row_chart, scaling_chart

    found = origins((figure, key) for _, _, _, figure in points)
    if any(shared for _, _, shared, _ in points):
        caption = f"{caption} {OVERSUBSCRIBED}"
    title = "bandwidth (GB/s)"
    if len({threads for _, threads, _, _ in points}) > MAX_ROWS_OF_A_KERNEL:
        dots = [
            Dot(kernel, threads, *_gigabytes(figure, key), shared, bool(origin_mark(figure, key)))
            for kernel, threads, shared, figure in points
        ]
        return draw(
            caption, scaling_chart(dots, title), height=320, narrow_height=260, origins=found
        )
    bars = [
        Bar(
            f"{kernel}, {count(threads, 'thread')}{origin_mark(figure, key)}",
            str(threads),
            *_gigabytes(figure, key),
            format_quantity(key, getattr(figure, key)),
            shared or bool(origin_mark(figure, key)),
        )
        for kernel, threads, shared, figure in points
    ]
    return draw(caption, row_chart(bars, title), height=26 * len(bars), origins=found)


def _gigabytes(figure: FigureModel, key: str) -> tuple[float, float, float]:
    value, low, high = figure.estimate(key)
    return value / 1e9, low / 1e9, high / 1e9
