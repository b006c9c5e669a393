"""Accepted keys of a simulated device: all figures that nearfar reads, writes or ships.

Other profiles may have any key of valid form. In a simulated device, a misspelt ``tRFC_cycles``
would silently become a memory without refresh.
"""

from __future__ import annotations

import difflib
from itertools import product
from typing import TYPE_CHECKING

from nearfar.errors import BadInputError

if TYPE_CHECKING:
    from nearfar.records.profile import Profile

#: Timings, in ns or in cycles of the device's clock.
TIMINGS = ("tRCD", "tRCDWR", "tRP", "tRPclean", "tRAS", "CL", "CWL", "burst", "tCCD", "tCCDL",
           "tCCDLWR", "tRRD", "tRRDL", "tRRDact", "tRRDpre", "tFAW", "t32AW", "tWTR", "tWTRL",
           "tWR", "tRTP", "tRTRS", "tRFC", "tREFI", "tXP", "tXS", "tCKE", "tCKESR")  # fmt: skip
_CURRENTS = (
    "IDD0",
    "IDD2N",
    "IDD2P",
    "IDD3N",
    "IDD3P",
    "IDD4R",
    "IDD4W",
    "IDD5",
    "IDD5C",
    "IDD6",
    "array_current",
    "row_buffer_read_current",
    "row_buffer_write_current",
    "active_standby_current",
    "precharge_power_down_current",
    "refresh_current",
)
_ENERGIES = ("read", "write", "row_buffer_read", "row_buffer_write")
_WHERE = ("", "sequential_", "random_", "remote_")
_LATENCIES = ("read", "write", "ntwrite", "flush", "msync")
_BANDWIDTHS = ("flush", "mixed")
_OTHERS = (
    "clock_ns", "channels", "ranks", "bank_groups", "banks", "row_bytes", "bank_bytes",
    "rank_bytes", "command_buses", "command_clocks", "refresh_sets", "chips", "dimms",
    "vdd_V", "link_latency_ns", "link_latency_by_load_ns", "link_bandwidth_bytes_per_s",
    "link_queue_depth",
    "access_unit_bytes", "capacity_bytes", "endurance_writes",
    "price_per_gib", "first_touch_ns", "page_bytes", "page_walk_ns",
    "overlapped_page_walk_ns", "read_parallelism",
    "bandwidth_by_read_share_bytes_per_s", "read_latency_by_load_ns",
    "read_latency_by_region_ns", "ntwrite_latency_by_region_ns", "write_latency_by_region_ns",
    "read_tail_by_percentile_ns", "write_tail_by_percentile_ns", "buffered_read_latency_ns",
    "buffered_read_latency_by_level_ns", "buffer_by_level_bytes", "buffer_entry_by_level_bytes",
    "write_buffer_bytes", "overwrite_stall_ns", "overwrite_stall_interval_writes",
    "published_fastest_read_latency_ns", "published_slowest_read_latency_ns",
    "random_read_operations_per_s", "random_write_operations_per_s",
)  # fmt: skip


def known_keys() -> set[str]:
    """Every accepted key of a simulated device."""
    from nearfar._native import array_kernels

    kernels = [*(kernel["name"] for kernel in array_kernels()), *_BANDWIDTHS]
    over = ("", "_by_threads", "_by_access")
    return {
        *_OTHERS,
        *(f"{timing}_{unit}" for timing, unit in product(TIMINGS, ("ns", "cycles"))),
        *(f"{current}_mA" for current in _CURRENTS),
        *(f"{kind}_energy_pJ_per_bit" for kind in _ENERGIES),
        *(f"{where}{kind}_latency_ns" for where, kind in product(_WHERE, _LATENCIES)),
        *(
            f"{where}{kernel}_bandwidth{by}_bytes_per_s"
            for where, kernel, by in product(_WHERE, kernels, over)
        ),
    }


def refuse_unknown(profile: Profile) -> None:
    """Raise BadInputError that names an unknown figure, and similar known ones."""
    known = known_keys()
    for key in profile.figures:
        if key not in known:
            near = difflib.get_close_matches(key, sorted(known), n=3)
            raise BadInputError(
                f"unknown figure {key} of the device {profile.name}",
                (f"did you mean: {', '.join(near)}? " if near else "")
                + "rename or remove it in the profile; docs/formats/profile.md lists all figures",
            )
