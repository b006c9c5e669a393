"""The caches of a trace: those of a host, with the last one as measured here."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from nearfar.profiles import THIS, load_host
from nearfar.tracing.caches import caches_of
from nearfar.units import format_size

if TYPE_CHECKING:
    from nearfar.tracing.caches import Caches


def caches_behind(host: str, given: dict[str, str | None]) -> Caches:
    """The caches of a host by name, with the ``given`` ones replaced by level.

    On this machine, the size of the last level is measured by a pointer chase, unless it is given.
    Raises BadInputError, MachineError.
    """
    caches = caches_of(load_host(host), given)
    if host == THIS and given.get("llc") is None:
        _measure_last(caches)
    return caches


def _measure_last(caches: Caches) -> None:
    """Measure the last level: virtual machines may report a cache that is shared with others."""
    from nearfar.measure.memory_here import last_cache_here

    reported = caches.llc
    if reported is None:
        return
    cpu = min(os.sched_getaffinity(0))
    found = last_cache_here(reported.size_bytes, 2 * caches.l2.size_bytes, cpu)
    if found == reported.size_bytes:
        return
    caches.llc = replace(reported, size_bytes=found) if found else None
    caches.notes.append(
        f"the last cache is reported as {format_size(reported.size_bytes)}, and a chase over as "
        f"much misses it: {format_size(found) if found else 'none'} is assumed"
    )
