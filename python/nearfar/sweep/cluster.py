"""Cells on the workers of a dask.distributed scheduler.

A worker's machine is locked by each cell as this one would be, so that two workers of one machine
never measure at once. A worker needs nearfar, of the same version, and the files that flags name,
under the same paths.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

from nearfar import __version__
from nearfar.errors import BadInputError, ExitCode, MachineError
from nearfar.sweep.order import Order
from nearfar.sweep.running import Outcome, run_order

if TYPE_CHECKING:
    from distributed import Client

#: How long a scheduler may take to answer, in seconds.
PATIENCE_S = 10
_ADDRESS = re.compile(r"(tcp|tls|ws|wss|ucx)://\S+:[0-9]+")


def run_on_cluster(orders: Sequence[Order], address: str) -> Generator[Outcome, None, None]:
    """Outcomes as they come. Raises BadInputError for an address that is none, MachineError for a
    scheduler that does not answer, that has no worker, or whose workers have another nearfar.

    What waits is given up where the iterator is closed, or an exception is raised at its ``yield``;
    what runs ends on its worker, and is not kept.
    """
    client = _connected(address)
    futures: dict[Any, Order] = {}
    try:
        _check_workers(client, address)
        from distributed import as_completed

        measures_first = sorted(orders, key=lambda order: not order.measures)
        futures = {client.submit(run_order, o, pure=False): o for o in measures_first}
        for future in as_completed(list(futures)):
            failure = future.exception()
            yield _lost(futures[future], failure) if failure else future.result()
    finally:
        client.cancel(list(futures))
        client.close()


def _connected(address: str) -> Client:
    if not _ADDRESS.fullmatch(address):
        raise BadInputError(
            f"'{address}' is no address of a scheduler", "write it like tcp://10.0.0.1:8786"
        )
    try:
        from distributed import Client
    except ImportError:
        raise MachineError(
            "--scheduler needs dask.distributed, which is not installed",
            f"{sys.executable} -m pip install distributed (the workers need it, too)",
        ) from None
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # errors are told by us, once
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
    except Exception as error:  # whatever a worker raises: it has no nearfar
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
    """Asked of each worker."""
    return __version__


def _lost(order: Order, failure: BaseException) -> Outcome:
    """What is told of a cell whose worker was lost, or refused it."""
    message = f"{type(failure).__name__}: {failure}".splitlines()[0]
    return Outcome(order, ExitCode.MACHINE, message, "", 0.0, "", {})
