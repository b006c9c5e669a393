"""A stored host of this machine with fixed figures: no test measures or reads the user's."""

from __future__ import annotations

from pathlib import Path

from nearfar.profiles import stored_host
from nearfar.profiles.this_host import this_host
from nearfar.records.figures import Origin
from nearfar.records.profile import Figure, Host, HostMeasurement

Rows = list[tuple[float, tuple[float, float, float]]]
MIB = float(1 << 20)
LAST_CACHE = (8 * MIB, 12 * MIB, 16 * MIB)
SCALARS = {
    "l1_load_ns": (1.0, 1.0, 1.0),
    "l2_load_ns": (3.5, 3.5, 3.5),
    "l3_load_ns": (12.0, 12.0, 13.0),
    "near_read_latency_ns": (150.0, 155.0, 160.0),
    "l3_bytes": LAST_CACHE,
    "stlb_hit_ns": (1.0, 2.0, 3.0),
    "near_stream_line_ns": (2.0, 2.2, 2.4),
    "near_flush_latency_ns": (160.0, 166.0, 170.0),
    "near_evicting_flush_latency_ns": (215.0, 220.0, 225.0),
    "near_flushed_line_ns": (4.0, 4.2, 4.5),
}
HELD: dict[str, Rows] = {
    key: [(2 * MIB, LAST_CACHE), (64 * MIB, LAST_CACHE)]
    for key in ("l3_held_by_region_bytes", "l3_held_at_once_by_region_bytes")
}
WALKS: dict[str, Rows] = {
    "page_walk_by_region_ns": [(32 * MIB, (14.0, 15.0, 16.0)), (64 * MIB, (18.0, 20.0, 22.0))]
}
TLB = {"dtlb_entries": 64, "dtlb_ways": 4, "stlb_entries": 2048, "stlb_ways": 16}
#: First touch of a page, and the walk over a small and a large region, by page size.
PAGES = {"4k": (4096, 500.0, (12.0, 28.0)), "thp": (2 << 20, 90_000.0, (0.0, 0.0))}


def unit_of(key: str) -> str:
    """The unit that a key of this host ends in."""
    return "B" if key.endswith("bytes") else "B/s" if key.endswith("per_s") else "ns"


def scalar(unit: str, low: float, value: float, high: float) -> Figure:
    """A measured value with its range."""
    return Figure(
        unit=unit,
        value=value,
        low=low,
        high=high,
        source="nearfar",
        confidence="A",
        origin=Origin.MEASURED,
    )


def curve(unit: str, x: str, rows: Rows) -> Figure:
    """A measured curve: coordinates with low, value and high."""
    return Figure(
        unit=unit,
        x=[x],
        points=[[at, value] for at, (_, value, _) in rows],
        ranges=[(low, high) for _, (low, _, high) in rows],
        source="nearfar",
        confidence="A",
        origin=Origin.MEASURED,
    )


def memory(pages: str) -> dict[str, Figure]:
    """Figures of ordinary memory on one page size."""
    page, touch, walks = PAGES[pages]
    rates = {
        f"{kernel}_bandwidth_by_threads_bytes_per_s": (30e9, 35e9, 40e9)
        for kernel in ("read", "ntwrite")
    }
    return {
        "read_latency_ns": scalar("ns", 150, 155, 160),
        "read_parallelism": scalar("count", 14, 15, 16),
        "page_bytes": scalar("B", page, page, page),
        "first_touch_ns": scalar("ns", 0.9 * touch, touch, 1.2 * touch),
        "page_walk_by_region_ns": curve(
            "ns",
            "region_bytes",
            [(at * MIB, (w, w, w)) for at, w in zip((64, 128), walks, strict=True)],
        ),
        **{key: curve("B/s", "threads", [(1.0, rate)]) for key, rate in rates.items()},
    }


def fixed_host(*, provisional: bool = False) -> Host:
    """This machine with figures that were not measured."""
    reported = this_host()
    figures = {**reported.figures}
    figures |= {k: scalar("count", v, v, v) for k, v in TLB.items() if k not in figures}
    figures |= {key: scalar(unit_of(key), *values) for key, values in SCALARS.items()}
    curves = {**HELD, **WALKS}
    figures |= {key: curve(unit_of(key), "region_bytes", rows) for key, rows in curves.items()}
    return reported.model_copy(
        update={
            "figures": figures,
            "sources": {**reported.sources, "nearfar": "fixed figures of the tests"},
            "memories": {f"dram,pages={pages}": memory(pages) for pages in PAGES},
            "measured": HostMeasurement(
                started="2026-01-01T00:00:00Z",
                ended="2026-01-01T00:02:00Z",
                epochs=8,
                provisional=provisional,
            ),
        }
    )


def store(host: Host | None = None) -> Path:
    """Store it where XDG_DATA_HOME says."""
    host = host or fixed_host()
    return stored_host.write(host, host.machine or "")
