"""Values in the output of another tool, and the figures that they become."""

from __future__ import annotations

from dataclasses import dataclass, field

from nearfar.profiles.loaded_curves import Loaded, open_ends
from nearfar.records.profile import Figure

#: The source of a figure until its file is known.
_PENDING = "imported"


@dataclass
class Found:
    """Figures of one output. ``tool``: what printed it, with its version if it is known.
    ``left_out``: what was printed, but belongs to more than this memory."""

    tool: str
    figures: dict[str, Figure] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)


def scalar(unit: str, value: float, note: str | None = None) -> Figure:
    """A single number."""
    return Figure(unit=unit, value=value, source=_PENDING, confidence="A", note=note)


def curve(unit: str, x: list[str], points: list[list[float]], note: str | None = None) -> Figure:
    """A curve."""
    return Figure(unit=unit, x=x, points=points, source=_PENDING, confidence="A", note=note)


def loaded_figures(curves: dict[float, list[Loaded]], note: str = "") -> dict[str, Figure]:
    """Figures of bandwidth-latency curves by the fraction of reads.

    Curves that the load did not saturate are named in the notes: beyond their ends nothing is
    known. Points without bandwidth give the idle latency only.
    """
    reads = max(curves)
    idle = min(curves[reads], key=lambda point: point.bandwidth)
    points = sorted(
        {
            (share, point.bandwidth): point.latency
            for share, each in curves.items()
            for point in each
            if point.bandwidth > 0
        }.items()
    )
    peaks = {share: max(point.bandwidth for point in each) for share, each in curves.items()}
    said = "; ".join(filter(None, (note, open_ends(curves)))) or None
    mix = "" if reads == 1 else f"with {reads:.0%} reads"
    return {
        "read_latency_ns": scalar("ns", idle.latency, f"at {idle.bandwidth / 1e9:.3g} GB/s"),
        "read_bandwidth_bytes_per_s": scalar(
            "B/s", peaks[reads], "; ".join(filter(None, (mix, said))) or None
        ),
        "bandwidth_by_read_share_bytes_per_s": curve(
            "B/s", ["read_share"], [[share, peaks[share]] for share in sorted(peaks)], said
        ),
        "read_latency_by_load_ns": curve(
            "ns",
            ["read_share", "bandwidth_bytes_per_s"],
            [[share, bandwidth, latency] for (share, bandwidth), latency in points],
            said,
        ),
    }
