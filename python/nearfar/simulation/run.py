"""Simulate a stream of requests with a core model, a placement and two memories, in the core."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from nearfar.records.figures import Origin, Provenance, with_origin
from nearfar.records.simulation import (
    BankActivity,
    ControllerSettings,
    Difference,
    EnergyParts,
    SimulatedTier,
    SimulatedTiers,
    Simulation,
)
from nearfar.simulation.controller import Controller
from nearfar.units import LINE_BYTES, PAGE_BYTES

if TYPE_CHECKING:
    from nearfar._native import SimOutcome, SimSource, SimTier
    from nearfar.records.choices import CoreModel, EngineName, WritePolicy
    from nearfar.simulation.devices import Device
    from nearfar.simulation.placements import Placement

NO_LIMIT = 2**63
#: Number of requests that both engines run for comparison.
SAMPLE = 2_000_000
#: Default number of accesses in flight.
WINDOW = 10
_PS = 1e-12
_FIGURES = ("time_s", "cpu_time_s", "stall_s", "bandwidth_bytes_per_s")
#: Beginning of the messages of the fast engine about what it does not model.
_FAST = "the fast engine"
#: Origin of what an engine computed.
SIMULATED = Provenance(origin=Origin.SIMULATED, statistic="simulation", samples=0)
#: Fraction of writes above which _MANY is reported.
_MANY_WRITES = 0.3
_MANY = (
    "many writes: the fast engine differs by up to 27% in the energy of PCM; --engine both shows "
    "by how much"
)
#: One of the two memories.
TierName = Literal["near", "far"]
#: The memories that the user chose.
ChosenTiers = frozenset[TierName]
TIERS: tuple[TierName, ...] = ("near", "far")
_BOTH: ChosenTiers = frozenset(TIERS)
_FLIP = "wear is counted in whole lines: traces hold no values, so that Flip-N-Write has no effect"


@dataclass(frozen=True)
class Options:
    """Settings of the core and of the memory controllers."""

    controller: Controller = field(default_factory=Controller)
    write_policy: WritePolicy = "posted"
    core: CoreModel = "window"
    window: int = WINDOW
    threads: int = 1
    max_requests: int = NO_LIMIT


#: Returns the stream from its start, at each call.
MakeSource = Callable[[], "SimSource"]


def run(
    source: SimSource,
    near: Device,
    far: Device,
    placement: Placement,
    options: Options,
    engine: EngineName,
    *,
    accept_inexact: bool = False,
) -> tuple[SimOutcome, float]:
    """Run the native engine. Returns its result, and simulated requests per second of real time.

    Raises NativeError for rejected input, and for a result of the fast engine that may differ by
    more than 5 % from the exact one, unless ``accept_inexact``.
    """
    from nearfar import _native

    plan = placement.native()
    began = time.perf_counter()
    outcome = _native.simulate(
        source,
        near.native,
        far.native,
        options.controller.native(),
        plan,
        engine,
        options.core.replace("-", "_"),
        options.window,
        options.write_policy == "posted",
        options.threads,
        options.max_requests,
        accept_inexact,
    )
    return outcome, outcome["requests"] / (time.perf_counter() - began)


def simulate(
    name: str,
    make_source: MakeSource,
    near: Device,
    far: Device,
    placement: Placement,
    options: Options,
    engine: EngineName,
    chosen: ChosenTiers = _BOTH,
    *,
    accept_inexact: bool = False,
) -> Simulation:
    """Simulate all of a stream with one engine. Raises NativeError as ``run`` does.

    The energy of a memory that is not ``chosen`` and has no accesses is not in the total.
    """
    outcome, rate = run(
        make_source(), near, far, placement, options, engine, accept_inexact=accept_inexact
    )
    tiers = SimulatedTiers(
        near=_tier(near, outcome["near"], outcome), far=_tier(far, outcome["far"], outcome)
    )
    counted = _counted(tiers, chosen)
    energy = _sum([getattr(tiers, tier) for tier in counted])
    seconds = outcome["end_ps"] * _PS
    moved_bytes = outcome["requests"] * LINE_BYTES
    return Simulation(
        source=name,
        engine=engine,
        placement=placement.name,
        page_policy=options.controller.page_policy,
        controller=settings(options.controller),
        write_policy=options.write_policy,
        core=options.core,
        window=options.window,
        requests=outcome["requests"],
        time_s=seconds,
        cpu_time_s=outcome["compute_ps"] * _PS,
        stall_s=outcome["stall_ps"] * _PS,
        moved_pages=outcome["moved_pages"],
        energy_J=energy,
        energy_of=counted[0] if len(counted) == 1 else "both",
        bandwidth_bytes_per_s=moved_bytes / seconds if seconds else 0.0,
        requests_per_s=rate,
        tiers=tiers,
        limits=[
            *_limits(near, far, options.controller),
            *(_on_pcm(engine, outcome, options) if _has_pcm(near, far, counted) else []),
        ],
        provenance=_provenance(has_energy=energy is not None),
    )


def settings(controller: Controller) -> ControllerSettings:
    """The settings in the format of records."""
    timed = controller.page_policy == "timeout"
    return ControllerSettings(
        timeout_ns=controller.timeout_ns if timed else None,
        scheduler=controller.scheduler,
        row_hit_cap=controller.row_hit_cap,
        write_drain=controller.write_drain,
        address_mapping=controller.mapping,
        power_down_after_ns=controller.power_down_after_ns,
        self_refresh_after_ns=controller.self_refresh_after_ns,
    )


def _provenance(*, has_energy: bool) -> dict[str, Provenance]:
    rate = Provenance(
        origin=Origin.MEASURED,
        statistic="claim",
        samples=1,
        note="one run, reading of the trace included",
    )
    return {
        "requests_per_s": rate,
        **dict.fromkeys(_FIGURES, SIMULATED),
        **({"energy_J": SIMULATED} if has_energy else {}),
    }


def simulate_both(
    name: str,
    make_source: MakeSource,
    near: Device,
    far: Device,
    placement: Placement,
    options: Options,
    chosen: ChosenTiers = _BOTH,
) -> Simulation:
    """Simulate a stream with the fast engine, and its first ``SAMPLE`` requests with both."""

    def of(options: Options, engine: EngineName) -> Simulation:
        return simulate(
            name, make_source, near, far, placement, options, engine, chosen, accept_inexact=True
        )

    result = of(options, "fast")
    sample = replace(options, max_requests=min(options.max_requests, SAMPLE))
    fast, exact = of(sample, "fast"), of(sample, "exact")
    energies = None
    if fast.energy_J is not None and exact.energy_J:
        energies = fast.energy_J / exact.energy_J - 1
    result.difference = Difference(
        requests=exact.requests,
        time_difference=fast.time_s / exact.time_s - 1 if exact.time_s else 0.0,
        energy_difference=energies,
        exact_time_s=exact.time_s,
        exact_energy_J=exact.energy_J,
        exact_requests_per_s=exact.requests_per_s,
    )
    return result


def _counted(tiers: SimulatedTiers, chosen: ChosenTiers) -> list[TierName]:
    """Return the tiers in the total energy: the chosen ones, and those with accesses."""
    return [t for t in TIERS if t in chosen or _is_used(getattr(tiers, t))] or [*TIERS]


def _is_used(tier: SimulatedTier) -> bool:
    return bool(tier.device_reads + tier.device_writes)


def _sum(tiers: list[SimulatedTier]) -> float | None:
    """Sum of the energies. None if a used memory has no figures; an unused one is ignored."""
    known = [tier.energy_J for tier in tiers if tier.energy_J is not None]
    lacking = any(tier.energy_J is None and _is_used(tier) for tier in tiers)
    return None if lacking or not known else sum(known)


def simulate_auto(
    name: str,
    make_source: MakeSource,
    near: Device,
    far: Device,
    placement: Placement,
    options: Options,
    chosen: ChosenTiers = _BOTH,
) -> Simulation:
    """Simulate a stream with the fast engine, or with the exact one where that one refuses.

    Raises NativeError for what both refuse.
    """
    from nearfar._native import NativeError

    def of(engine: EngineName) -> Simulation:
        return simulate(name, make_source, near, far, placement, options, engine, chosen)

    if options.threads > 1:  # of the exact engine
        return of("exact")
    try:
        return of("fast")
    except NativeError as error:
        why = str(error.args[1])
        if not why.startswith(_FAST):
            raise
    result = of("exact")
    result.warnings.append(f"simulated with the exact engine: {why}")
    return result


def _has_pcm(near: Device, far: Device, counted: list[TierName]) -> bool:
    """Whether one of the memories in the total is PCM."""
    devices = {"near": near, "far": far}
    return any(devices[tier].is_pcm for tier in counted)


def _on_pcm(engine: EngineName, outcome: SimOutcome, options: Options) -> list[str]:
    """Limits of results on PCM, and cases in which the fast engine differs from the exact
    one."""
    if engine != "fast" or options.core != "window":
        return [_FLIP]
    writes = outcome["near"]["writes"] + outcome["far"]["writes"]
    return [_FLIP, _MANY] if writes > _MANY_WRITES * outcome["requests"] else [_FLIP]


def _limits(near: Device, far: Device, controller: Controller) -> list[str]:
    fields = []
    for device in {near.name: near, far.name: far}.values():
        if not device.has_energy:
            fields.append(f"{device.name} has no energy figures: no energy is reported for it")
        elif not device.has_background:
            fields.append(f"{device.name} has no background power: its energy is a lower bound")
        for state, asked, known in (
            ("power-down", controller.power_down_after_ns, device.has_power_down),
            ("self-refresh", controller.self_refresh_after_ns, device.has_self_refresh),
        ):
            if asked is not None and not known:
                fields.append(f"{device.name} has no figures of {state} and does not enter it")
    return fields


def _tier(device: Device, tier: SimTier, outcome: SimOutcome) -> SimulatedTier:
    accesses = tier["device_reads"] + tier["device_writes"]
    hits = tier["row_hits"] + tier["buffer_hits"]
    fields = _read_latencies(tier) if tier["reads"] else {}
    if tier["reads"] + tier["writes"]:
        fields |= _traffic(tier, outcome["end_ps"])
        fields["banks"] = [BankActivity.model_validate(bank) for bank in tier["banks"]]
    for state in ("active_power_down", "power_down", "self_refresh"):
        if time := tier[f"{state}_ps"]:  # type: ignore[literal-required]
            fields[f"{state}_s"] = time * _PS
    if device.has_energy:
        fields["energy_J"] = sum(tier["energy_J"].values())
        parts: dict[str, Any] = {f"{part}_J": joules for part, joules in tier["energy_J"].items()}
        fields["energy_parts"] = with_origin(EnergyParts(**parts), SIMULATED)
    keys = (
        "reads",
        "writes",
        "device_reads",
        "device_writes",
        "refreshes",
        "lines_written",
        "pages_written",
        "most_line_writes",
        "most_page_writes",
    )
    fields |= {key: value for key, value in tier.items() if key in keys}
    fields |= _lifetimes(device, tier, outcome["end_ps"] * _PS)
    share = hits / accesses if accesses else None
    return with_origin(SimulatedTier(device=device.name, row_hit_share=share, **fields), SIMULATED)


def _read_latencies(tier: SimTier) -> dict[str, Any]:
    names = ("p50_latency_ns", "p90_latency_ns", "p99_latency_ns", "p999_latency_ns")
    return {
        **dict(zip(names, tier["read_percentiles_ns"], strict=True)),
        "read_latency_ns": tier["read_time_ps"] / tier["reads"] / 1000,
        "largest_latency_ns": tier["largest_read_ns"],
        "read_latency_histogram": tier["read_histogram_ns"],
    }


def _traffic(tier: SimTier, end_ps: int) -> dict[str, Any]:
    """Bandwidth by interval. The last interval ends with the run."""
    interval = tier["traffic_interval_ps"]
    begins = range(0, max(end_ps, 1), interval)
    return {
        "traffic_interval_s": interval * _PS,
        "traffic_bytes_per_s": [
            accesses * LINE_BYTES / (min(interval, end_ps - begin) * _PS)
            for begin, accesses in zip(begins, tier["accesses_by_interval"], strict=False)
        ],
    }


def _lifetimes(device: Device, tier: SimTier, seconds: float) -> dict[str, float]:
    endurance = device.endurance_writes
    if endurance is None or not tier["most_line_writes"]:
        return {}
    mean = tier["device_writes"] / (tier["pages_written"] * (PAGE_BYTES // LINE_BYTES))
    return {
        "lifetime_s": endurance / tier["most_line_writes"] * seconds,
        "levelled_lifetime_s": endurance / mean * seconds,
    }
