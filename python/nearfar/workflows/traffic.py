"""Traffic under a plan: trace the program again, and count its lines by the plan's rules."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from nearfar.errors import BadInputError, NearfarError

if TYPE_CHECKING:
    from nearfar.place.promise import Promise
    from nearfar.place.sites import Site
    from nearfar.place.traffic import Traffic


def traffic_of(
    program: list[str], plan: Path, promise: Promise, notify: Callable[[str], None]
) -> Traffic | None:
    """Lines by rule, behind the caches of the promise; None, after a note, if they cannot be
    counted."""
    from nearfar.place.traffic import count, rules_by_site

    try:
        rules = rules_by_site(plan)
        if promise.whole.caches is None:
            raise BadInputError("the plan promises no counts of accesses (see advise --emulate)")
        notify("nearfar: running it once more under the emulator, to count accesses")
        return count(rules, _traced(program, promise.whole.caches))
    except NearfarError as error:
        notify(f"nearfar: {error.what}: traffic is not compared")
        return None


def _traced(program: list[str], promised_caches: str) -> tuple[Site, ...]:
    """The sites of a traced run. Raises NearfarError."""
    from nearfar.place.traced import read_trace
    from nearfar.tracing.caches import parse_caches
    from nearfar.tracing.recording import record

    caches = parse_caches(promised_caches)  # recorded with "plan" in place of a host's name
    with tempfile.TemporaryDirectory(prefix="nearfar-traffic-") as folder:
        trace = Path(folder) / "trace"
        done = record(
            program, trace, caches, host="plan", after=caches.last, prefetch=True, alone=True
        )
        if done.code:
            raise BadInputError(f"under the emulator it ended with {done.code}")
        return read_trace(trace).sites
