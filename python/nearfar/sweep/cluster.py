"""Cells on the workers of a dask.distributed scheduler.

A worker's machine is locked by each cell as the local one would be, so that two workers on one
machine never measure concurrently. A worker requires nearfar of the same version, and the files
that flags name, under the same paths.
"""

from __future__ import annotations

import contextlib
import logging
import re
import time
from collections.abc import Generator, Sequence
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any

from nearfar import __version__
from nearfar.errors import BadInputError, ExitCode, MachineError
from nearfar.extras import require
from nearfar.sweep.running import Outcome, run_order
from nearfar.sweep.scratch import remove_abandoned
from nearfar.sweep.work_order import WorkOrder

if TYPE_CHECKING:
    from distributed import Client

#: Seconds for a scheduler to answer, and for which it may have no worker.
PATIENCE_S = 10
#: Polling interval for workers, in seconds.
_LOOK_S = 2
_AGAIN = "sweep again: finished cells are kept"
_ADDRESS = re.compile(r"(tcp|tls|ws|wss|ucx)://\S+:[0-9]+")


def run_on_cluster(orders: Sequence[WorkOrder], address: str) -> Generator[Outcome, None, None]:
    """Yield outcomes as cells finish. Raises BadInputError for an invalid address, MachineError for
    a scheduler that does not answer, that has no worker left, or whose workers have another
    nearfar.

    Pending cells are canceled if the iterator is closed, or an exception is raised at its
    ``yield``; running cells end on their worker, and are not kept.
    """
    client = _connected(address)
    futures: dict[Any, WorkOrder] = {}
    try:
        _check_workers(client, address)
        measures_first = sorted(orders, key=lambda order: not order.measures)
        futures = {client.submit(run_order, o, pure=False): o for o in measures_first}
        for future in _finished(client, list(futures), address):
            failure = future.exception()
            yield _lost(futures[future], failure) if failure else future.result()
    except CancelledError:
        raise MachineError(f"the scheduler at {address} was lost", _AGAIN) from None
    finally:
        with contextlib.suppress(OSError, TimeoutError, CancelledError):
            client.cancel(list(futures))
            client.close()
        remove_abandoned()  # folders of killed workers, if they ran on this machine


def _finished(client: Client, futures: Sequence[Any], address: str) -> Generator[Any, None, None]:
    """Yield finished futures. Raises MachineError after a time without workers."""
    from distributed import wait

    waiting, seen = list(futures), time.monotonic()
    while waiting:
        try:
            done = wait(waiting, timeout=_LOOK_S, return_when="FIRST_COMPLETED").done
        except TimeoutError:
            done = set()
        if client.scheduler_info()["workers"]:
            seen = time.monotonic()
        elif time.monotonic() - seen > PATIENCE_S:
            raise MachineError(
                f"the scheduler at {address} has no workers any more: the last one was lost",
                f"start one on each machine: `dask worker {address} --nthreads 1`; {_AGAIN}",
            )
        waiting = [future for future in waiting if future not in done]
        yield from done


def _connected(address: str) -> Client:
    if not _ADDRESS.fullmatch(address):
        raise BadInputError(
            f"'{address}' is not the address of a scheduler", "write it like tcp://10.0.0.1:8786"
        )
    require("cluster", "--scheduler")  # the workers need it, too
    from distributed import Client

    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # errors are reported here, once
    try:
        return Client(address, timeout=PATIENCE_S)
    except (OSError, ValueError) as error:
        raise MachineError(
            f"no scheduler answers at {address}: {error}",
            f"start one: `dask scheduler`, and on each machine `dask worker {address}`",
        ) from None


def _check_workers(client: Client, address: str) -> None:
    start = f"start one on each machine: `dask worker {address} --nthreads 1`"
    try:
        found = client.run(version)
    except Exception as error:  # any exception of a worker means that it has no working nearfar
        raise MachineError(
            f"a worker of {address} cannot run nearfar: {error}", "install nearfar where it runs"
        ) from None
    if not found:
        raise MachineError(f"the scheduler at {address} has no workers", start)
    other = {worker: seen for worker, seen in found.items() if seen != __version__}
    if other:
        worker, seen = next(iter(other.items()))
        raise MachineError(
            f"the worker {worker} has nearfar {seen}, this is {__version__}",
            "install the same version everywhere",
        )


def version() -> str:
    """The version of nearfar; runs on each worker."""
    return __version__


def _lost(order: WorkOrder, failure: BaseException) -> Outcome:
    """The outcome of a cell whose worker was lost or rejected it."""
    message = f"{type(failure).__name__}: {failure}".splitlines()[0]
    return Outcome(order, ExitCode.MACHINE, message, "", 0.0, "", {})
