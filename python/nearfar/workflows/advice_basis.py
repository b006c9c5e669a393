"""Input figures of advice: latency, bandwidth and pages of the memories, and the last cache.

Each figure has its range and its source.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nearfar.errors import BadInputError
from nearfar.place.memory_costs import measured_here
from nearfar.profiles.loaded_curves import curves_of
from nearfar.records.advice import ASSUMED, CAPPED, CAPPED_LIKE_NEAR, LOWER_BOUND
from nearfar.records.figures import Origin, Provenance
from nearfar.units import LINE_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nearfar.place.memory_costs import Memory
    from nearfar.records.advice import AdviceResult, FarAdvice
    from nearfar.records.profile import Datasheet, Host, Profile
    from nearfar.tracing.caches import Caches
    from nearfar.workflows.observation import NearMemory


def add(
    result: AdviceResult,
    near: Profile,
    fars: Sequence[Profile],
    memories: Sequence[Memory],
    observed: NearMemory,
) -> None:
    """Add the figures of the memories, as the model used them."""
    here = observed.run_profile
    _add(result, "near", near, observed.memory, here)
    if observed.memory.capped:
        _cap_as_shown(result, "near", here)
    if not observed.is_run_memory:
        result.intervals["observed_latency_ns"] = (
            observed.run_memory.low,
            observed.run_memory.high,
        )
    for i, (profile, memory) in enumerate(zip(fars, memories, strict=True)):
        for advice in (result.fars[i], result) if i == 0 else (result.fars[i],):
            _add(advice, "far", profile, memory, here)
            if memory.capped:
                _cap_as_shown(advice, "far", here)


def _add(result: FarAdvice, side: str, profile: Profile, memory: Memory, here: Profile) -> None:
    """``here``: the memory of the observed run; its page walks are used for a memory whose profile
    has none."""
    latency_key, rate_key, pages_key = (
        f"{side}_{key}" for key in ("latency_ns", "bandwidth_bytes_per_s", "page_bytes")
    )
    setattr(result, latency_key, memory.latency)
    setattr(result, rate_key, LINE_BYTES / memory.line * 1e9 if memory.line else None)
    setattr(result, pages_key, 1 << memory.page_shift)
    if memory.low < memory.high:
        result.intervals[latency_key] = (memory.low, memory.high)
    keys = {
        latency_key: ("read_latency_ns", "from its timings"),
        rate_key: (
            "read_bandwidth_by_threads_bytes_per_s",
            "from bandwidth or latency of all threads",
        ),
        pages_key: ("page_bytes", "those of near memory, or small ones"),
    }
    for key, (figure, otherwise) in keys.items():
        result.provenance[key] = _provenance(profile, figure, otherwise)
    _explain_bandwidth(result, rate_key, profile, memory)
    if memory.walk.alone:
        low, high = (walk.alone for walk in memory.walks)
        setattr(result, f"{side}_page_walk_ns", memory.walk.alone)
        if low < high:
            result.intervals[f"{side}_page_walk_ns"] = low, high
        walked = profile if "page_walk_ns" in profile.figures else here
        walks = _provenance(walked, "page_walk_ns", "none")
        result.provenance[f"{side}_page_walk_ns"] = walks


def _explain_bandwidth(result: FarAdvice, rate_key: str, profile: Profile, memory: Memory) -> None:
    """Add the provenance of a bandwidth that is not in the profile (assumed or capped), and replace
    a bandwidth that was disturbed by its measured value."""
    if memory.assumed:
        note = f"{ASSUMED}; as many lines in flight as on near memory"
        result.provenance[rate_key] = Provenance(
            origin=Origin.MODELLED, statistic="fit", samples=0, note=note
        )
    elif memory.capped:
        why = CAPPED_LIKE_NEAR if measured_here(profile) else CAPPED
        note = f"{why}; {result.provenance[rate_key].note}"
        result.provenance[rate_key] = result.provenance[rate_key].model_copy(update={"note": note})
    if not memory.capped and (disturbed := _disturbed_bandwidth(profile)):
        # The model uses the upper end of the range, so that other programs add no loss. The figure
        # is the measured value.
        setattr(result, rate_key, disturbed[0])
        result.intervals[rate_key] = disturbed[1]


def _disturbed_bandwidth(profile: Profile) -> tuple[float, tuple[float, float]] | None:
    """The bandwidth of one thread with its range, if it was measured while other programs ran."""
    figure = profile.figures.get("read_bandwidth_by_threads_bytes_per_s")
    if figure is None or not figure.is_disturbed() or not figure.ranges:
        return None
    low, high = figure.ranges[0]
    return (figure.points or [[1, low]])[0][1], (low, high)


def _cap_as_shown(result: FarAdvice, side: str, here: Profile) -> None:
    """Give a capped bandwidth the range of the disturbed measurement that it was derived from.

    The bandwidth is capped by that of this machine's memory (``here``). If that was disturbed, the
    result has its measured value and its range. The model uses the upper end.
    """
    disturbed = _disturbed_bandwidth(here)
    if disturbed is None:
        return
    rate_key = f"{side}_bandwidth_bytes_per_s"
    measured, (low, high) = disturbed
    # Above 1 for a memory of shorter latency, whose cap is higher (place/memory_costs.py).
    ratio = (getattr(result, rate_key) or high) / high
    setattr(result, rate_key, measured * ratio)
    result.intervals[rate_key] = low * ratio, high * ratio


def add_peaks(result: AdviceResult, near: Profile, fars: Sequence[Profile]) -> None:
    """Add the bandwidth of all threads of the memories whose profile has it."""
    _add_peak(result, "near", near)
    _add_peak(result, "far", fars[0])
    for advice, profile in zip(result.fars, fars, strict=True):
        _add_peak(advice, "far", profile)


def _add_peak(result: FarAdvice, side: str, profile: Profile) -> None:
    try:
        curves = curves_of(profile)
    except BadInputError:  # it has the bandwidth of one thread at most
        return
    key = f"{side}_peak_bytes_per_s"
    reading = curves.curves[max(curves.curves)]
    setattr(result, key, max(point.bandwidth for point in reading))
    known = "read_latency_by_load_ns", "read_bandwidth_bytes_per_s"
    figure = next((each for each in known if each in profile.figures), "")
    provenance = _provenance(profile, figure, "bandwidth of reads alone")
    if curves.open_shares:
        note = f"{LOWER_BOUND}: the load did not saturate it; {provenance.note}"
        provenance = provenance.model_copy(update={"note": note})
    result.provenance[key] = provenance


def _provenance(sheet: Datasheet, key: str, otherwise: str) -> Provenance:
    figure = sheet.figures.get(key)
    if figure is None:
        note = f"{sheet.name}: {otherwise}"
        return Provenance(origin=Origin.CLAIMED, statistic="claim", samples=0, note=note)
    origin = figure.origin or Origin.CLAIMED
    note = "; ".join(filter(None, (sheet.source_of(key), figure.note)))
    statistic = "claim" if origin is Origin.CLAIMED else "fit"
    return Provenance(
        origin=origin, statistic=statistic, samples=0, note=note, machine=sheet.machine or ""
    )


def add_host(result: AdviceResult, host: Host, caches: Caches) -> None:
    """Add the last cache, and how well the host is known."""
    result.last_cache_bytes = caches.llc.size_bytes if caches.llc else 0
    if caches.given:
        given = Provenance(origin=Origin.CLAIMED, statistic="claim", samples=0, note="given: --llc")
        result.provenance["last_cache_bytes"] = given
    elif "l3_bytes" in host.figures:
        low, high = host.figure("l3_bytes").interval()
        if low < high:
            result.intervals["last_cache_bytes"] = (low, high)
        result.provenance["last_cache_bytes"] = _provenance(host, "l3_bytes", "")
    if host.measured is not None:
        result.host_epochs = host.measured.epochs
        result.provisional = host.measured.provisional
        result.disturbed = host.measured.provisional and host.measured.disturbed
