"""Cells on this machine: measurements one after another, then computations in parallel."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from nearfar.sweep.running import Outcome, Processes, run_order
from nearfar.sweep.work_order import WorkOrder


def run_here(
    orders: Sequence[WorkOrder], jobs: int, scratch: Path, waits: Callable[[], None]
) -> Generator[Outcome, None, None]:
    """Yield outcomes as cells finish. ``waits`` is called if a cell waits for the machine's lock.

    Closing the iterator, or an exception at its ``yield``, stops the running cells.
    """
    processes = Processes()
    for chosen, workers in (
        ([order for order in orders if order.measures], 1),
        ([order for order in orders if not order.measures], jobs),
    ):
        pool = ThreadPoolExecutor(workers)
        running = [pool.submit(run_order, o, processes, waits, scratch) for o in chosen]
        try:
            for done in as_completed(running):
                yield done.result()
        except BaseException:
            for waiting in running:
                waiting.cancel()
            processes.stop()
            raise
        finally:
            pool.shutdown()
