"""Measure this machine: ``study``, ``probe``, ``probe_matrix``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nearfar.api._common import public, size_in_bytes
from nearfar.workflows.options import Options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nearfar.records.matrix import MatrixResult
    from nearfar.records.run import Sections
    from nearfar.workflows.recording import Measured
    from nearfar.workflows.study import Studied


@public
def study(options: Options | None = None, *, full: bool = False) -> Studied:
    """Measure all memory of this machine, as ``nearfar study`` does.

    Takes under three minutes, or half an hour if ``full``. ``result`` is the record itself;
    ``report`` is the HTML page next to it.
    """
    from nearfar.workflows import study as workflow

    return workflow.study(options or Options(), full=full)


@public
def probe(
    tier: str = "dram",
    options: Options | None = None,
    *,
    quick: bool = False,
    region: int | str | None = None,
    threads: Sequence[int] = (),
    size: str | None = None,
) -> Measured[Sections]:
    """Measure one tier in depth, as ``nearfar probe`` does.

    ``tier``: such as ``dram``, ``numa:1``, ``shm:``. ``region``: bytes of the largest region of the
    latency curve; ``size``: of an array, such as ``256MiB``. The folder of the record has
    ``profile.toml``, which ``far=`` and ``near=`` of other functions accept.
    """
    from nearfar.workflows import study as workflow

    return workflow.probe(
        tier,
        options or Options(),
        quick=quick,
        region_bytes=size_in_bytes(region),
        threads=threads,
        size=size,
    )


@public
def probe_matrix(options: Options | None = None) -> Measured[MatrixResult]:
    """Measure latency and bandwidth from the CPUs of each node to the memory of each node.

    This is ``nearfar probe --matrix``. On a machine of one node the matrix has one entry.
    """
    from nearfar.workflows import study as workflow

    return workflow.probe_matrix(options or Options())
