"""Costs of a placement other than time: energy, wear and price, if profiles have the figures.

Energy is that of the fast engine of ``simulate`` over the trace, or extrapolated from its first
requests. Wear is a lower bound: writes are assumed to spread evenly over far memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nearfar.errors import BadInputError
from nearfar.place.costing import Coster
from nearfar.place.traced import ProgramTrace
from nearfar.records.figures import Origin, Provenance
from nearfar.units import LINE_BYTES

if TYPE_CHECKING:
    from nearfar.place.costing import CostModel
    from nearfar.place.program_data import ProgramData
    from nearfar.records.advice import FarAdvice
    from nearfar.records.profile import Profile
    from nearfar.simulation.devices import Device

_GIB = 1 << 30
_DAYS_A_YEAR = 365.25
_PRICE, _ENDURANCE = "price_per_gib", "endurance_writes"


@dataclass(frozen=True)
class Prices:
    """Prices of a GiB of near and of far memory, in one currency."""

    near: float
    far: float
    currency: str

    def of(self, near_bytes: int, movable_bytes: int) -> float:
        """Price of movable memory of which ``near_bytes`` are near."""
        far_bytes = max(movable_bytes - near_bytes, 0)
        return (near_bytes * self.near + far_bytes * self.far) / _GIB


def prices_of(near: Profile, far: Profile) -> Prices | str:
    """Prices, or the reason why they are unknown."""
    for profile in (near, far):
        if _PRICE not in profile.figures:
            return f"no price: {profile.name} has no {_PRICE}"
    currencies = {p.figure(_PRICE).unit.partition("/")[0] for p in (near, far)}
    if len(currencies) > 1:
        return (
            f"no price: {near.name} and {far.name} are given in {' and '.join(sorted(currencies))}"
        )
    return Prices(near.scalar(_PRICE), far.scalar(_PRICE), currencies.pop())


@dataclass(frozen=True)
class Placed:
    """A program, the memories it is placed on, and its time with all data near."""

    data: ProgramData
    coster: CostModel
    near: Profile
    far: Profile
    time_s: float


def other_expenses(
    placed: Placed, prices: Prices | str, far_sites: Sequence[int], near_bytes: int
) -> dict[str, Any]:
    """Keywords of FarAdvice for a plan that places ``far_sites`` far: energy, wear and price if
    known, and notes on unknown ones."""
    everything = range(len(placed.data.sites))
    joules = energies(placed, {"all_near": [], "all_far": everything, "plan": far_sites})
    years = lifetime_years(placed, far_sites)
    fields: dict[str, Any] = {
        "far_writes": far_writes(placed.data, far_sites),
        "lacking": [why for why in (joules, years, prices) if isinstance(why, str)],
    }
    if not isinstance(joules, str):
        fields |= {f"energy_{name}_J": energy for name, energy in joules.items()}
    if not isinstance(years, str):
        fields["lifetime_years"] = years
    if not isinstance(prices, str):
        heap = placed.data.movable_peak_bytes
        near = {"all_near": heap, "all_far": 0, "plan": near_bytes}
        fields |= {f"price_{name}": prices.of(size, heap) for name, size in near.items()}
        fields["currency"] = prices.currency
    return fields


def provenance_of(advice: FarAdvice) -> dict[str, Provenance]:
    """Provenance of the energies in the advice."""
    simulated = Provenance(
        origin=Origin.SIMULATED,
        statistic="simulation",
        samples=0,
        note="fast engine, over the trace",
    )
    keys = ("energy_all_near_J", "energy_all_far_J", "energy_plan_J")
    return {key: simulated for key in keys if getattr(advice, key) is not None}


def lifetime_years(placed: Placed, far_sites: Sequence[int]) -> float | str | None:
    """Lifetime of a far memory just large enough for the data, running this without pause; None if
    nothing is written; or why it is unknown."""
    if _ENDURANCE not in placed.far.figures:
        return f"no wear: {placed.far.name} has no {_ENDURANCE}"
    if not isinstance(placed.coster, Coster):
        return "no wear: it needs every write, which --emulate records"
    far_bytes = float(placed.data.sizes[list(far_sites)].sum(axis=0).max(initial=0.0))
    written = far_writes(placed.data, far_sites) * LINE_BYTES
    if not written or not far_bytes or placed.time_s <= 0:
        return None
    seconds = far_bytes * placed.far.scalar(_ENDURANCE) / (written / placed.time_s)
    return seconds / (_DAYS_A_YEAR * 86400)


def far_writes(data: ProgramData, far_sites: Sequence[int]) -> int:
    """Written far lines; sites by number."""
    return sum(data.sites[n].writes for n in far_sites)


def energies(placed: Placed, placements: Mapping[str, Sequence[int]]) -> dict[str, float] | str:
    """Joules of each placement, given by its far sites; or why they are unknown."""
    from nearfar._native import NativeError
    from nearfar.errors import from_native
    from nearfar.simulation.devices import Device, has_energy

    if not isinstance(placed.coster, Coster) or not isinstance(placed.data, ProgramTrace):
        return "no energy: it needs every access, which --emulate records"
    silent = [p.name for p in (placed.near, placed.far) if not has_energy(p)]
    if silent:
        return f"no energy: no figures of it for {' and '.join(dict.fromkeys(silent))}"
    try:
        devices = [Device.of(profile) for profile in (placed.near, placed.far)]
    except BadInputError as error:
        return f"no energy: {error.what}"
    except NativeError as error:
        return f"no energy: {from_native(error).what}"
    traced = placed.data
    return {
        name: _joules(traced, placed.coster, devices, far_sites)
        for name, far_sites in placements.items()
    }


def _joules(
    traced: ProgramTrace, coster: Coster, devices: Sequence[Device], far_sites: Sequence[int]
) -> float:
    from nearfar import _native
    from nearfar.simulation.placements import Placement, far_by_site
    from nearfar.simulation.run import SAMPLE, Options, run

    place = Placement("plan", near_by_default=True, objects=far_by_site(far_sites))
    source = _native.TraceSource(str(traced.path), coster.work.instruction_ns * 1000, place.objects)
    options = Options(window=coster.core.parallelism, max_requests=SAMPLE)
    outcome, _ = run(source, devices[0], devices[1], place, options, "fast", accept_inexact=True)
    joules = sum(sum(outcome[tier]["energy_J"].values()) for tier in ("near", "far"))
    return joules * traced.records / max(outcome["requests"], 1)
