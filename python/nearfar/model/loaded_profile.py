"""A memory as a program finds it while other programs use a part of its bandwidth.

    L = L_idle · curve(load) / curve(0);  B = B_peak - load

curve: loaded latency by bandwidth and fraction of reads, as measured (``loaded_curves``). Limits:
the program's own traffic adds no latency; nothing is extrapolated beyond the end of a curve.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nearfar.model.interleave import Load, LoadedMemory, loaded_memory_of, state_of
from nearfar.records.figures import Origin
from nearfar.units import format_bandwidth

if TYPE_CHECKING:
    from nearfar.records.profile import Figure, Profile

_LATENCY, _RATE = "read_latency_ns", "read_bandwidth_bytes_per_s"


@dataclass(frozen=True)
class ProfileUnderLoad:
    """A profile whose figures are those under a load, and what the answer says of it."""

    profile: Profile
    notes: tuple[str, ...]


def under_load(profile: Profile, load: Load) -> ProfileUnderLoad:
    """The profile under the traffic of other programs.

    Raises NativeError if the load leaves no bandwidth, BadInputError for a profile without latency
    or bandwidth.
    """
    idle = loaded_memory_of(profile)
    state = state_of(LoadedMemory(idle.name, idle.curves, load))
    factor = state["latency_ns"] / state_of(idle)["latency_ns"]
    rate = load.reads + load.writes
    note = f"under {format_bandwidth(rate)} of other programs"
    figures = dict(profile.figures)
    figures[_LATENCY] = _scaled(figures[_LATENCY], factor, note)
    if _RATE in figures:
        left = 1 - min(state["utilization"], 1.0)
        figures[_RATE] = _scaled(figures[_RATE], left, note)
    latency = profile.scalar(_LATENCY)
    notes = (
        f"{profile.name} {note}: {latency * factor:.0f} ns instead of {latency:.0f} ns",
        *idle.curves.warnings,
    )
    return ProfileUnderLoad(profile.model_copy(update={"figures": figures}), notes)


def _scaled(figure: Figure, factor: float, note: str) -> Figure:
    def times(value: float | None) -> float | None:
        return None if value is None else value * factor

    return figure.model_copy(
        update={
            "value": times(figure.value),
            "low": times(figure.low),
            "high": times(figure.high),
            "origin": Origin.MODELLED,
            "note": "; ".join(filter(None, (figure.note, note))),
        }
    )
