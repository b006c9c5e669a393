"""Explore nearfar's structures, directly or through libpmemobj if they use it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from nearfar.errors import MachineError
from nearfar.process.helpers import shipped
from nearfar.verify.explorer import Progress, explore
from nearfar.verify.findings import Exploration
from nearfar.verify.recorder import record

#: Files in memory.
MEMORY = Path("/dev/shm")
#: Structures on libpmemobj's logs and allocator.
ON_LIBPMEMOBJ = ("map_atomic", "map_tx", "map_rp")


def check(asked: Mapping[str, object], progress: Progress | None = None) -> Exploration:
    """Record a structure's operations and explore their possible crash images."""
    if asked["structure"] not in ON_LIBPMEMOBJ:
        return explore("check", asked, progress)
    with tempfile.TemporaryDirectory(prefix="nearfar-crash-", dir=_memory()) as work:
        pool, log = Path(work) / "pool", Path(work) / "log"
        what = {key: asked[key] for key in ("structure", "n", "seed") if key in asked}
        explore("make", {**what, "pool": pool})
        fill = [str(shipped("nearfar-crash")), "fill", f"pool={pool}"]
        fill += [f"{key}={value}" for key, value in what.items()]
        if code := record(fill, log, "preload"):
            raise MachineError(
                f"filling {asked['structure']} ended with {code}", "look at what it printed above"
            )
        return explore("check", {**asked, "log": log}, progress)


def _memory() -> str | None:
    """A directory in memory for pools, if there is one."""
    return str(MEMORY) if MEMORY.is_dir() else None
