"""Calibration of structure predictions: the host, and software in cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nearfar.measure.session import Samples, Session
    from nearfar.measure.timed import Case
    from nearfar.model.host_costs import HostCosts
    from nearfar.model.map_work import Constant
    from nearfar.model.pointer_structures import Software
    from nearfar.records.profile import Host
    from nearfar.stats import Estimate

#: Repeats, each on fresh memory.
SOFTWARE_EPOCHS = 9
#: Uncertainty factor of software scaled to another processor by its L1 latency.
_SCALE_RANGE = 1.3


def time_software(
    session: Session, cases: Sequence[Case], cpu: int, epochs: int = SOFTWARE_EPOCHS
) -> dict[Case, Estimate]:
    """Lower quartile of the repeats of each case. The cases have their data in cache."""
    from nearfar.stats import lower_quartile

    samples = _repeat(session, "software in cache", cases, cpu, epochs)
    return {case: lower_quartile(samples.of(case)) for case in cases}


def measure_predicted(
    session: Session, cases: Sequence[Case], cpu: int, epochs: int
) -> dict[Case, Estimate]:
    """Median of the repeats of each case, to compare with predictions."""
    from nearfar.stats import median

    samples = _repeat(session, "predicted structures", cases, cpu, epochs)
    return {case: median(samples.of(case)) for case in cases}


def _repeat(
    session: Session, section: str, cases: Sequence[Case], cpu: int, epochs: int
) -> Samples[Case]:
    from nearfar.measure.session import Effort
    from nearfar.measure.timed import TimedPlan

    samples, _ = session.repeat(
        section,
        "ns",
        TimedPlan(tuple(cases), cpu),
        Effort(60.0, epochs, apart=False),
        judge_spread=False,
    )
    return samples


def software(
    session: Session, cases: Sequence[Case], host: Host, cpu: int, epochs: int = SOFTWARE_EPOCHS
) -> dict[Case, Software]:
    """Software of cases on a host: timed here, and scaled for another host."""
    from nearfar.model import structure_cases
    from nearfar.model.devices import near_memory
    from nearfar.model.host_costs import costs_of
    from nearfar.profiles import THIS
    from nearfar.workflows.host_here import HostChoice, host_for

    times = time_software(session, structure_cases.all_in_cache(cases), cpu, epochs)
    own = host if host.name == THIS else host_for(HostChoice(), session)
    costs = costs_of(own)
    here = {
        case: structure_cases.software(
            case, times, costs, near_memory(own, costs), structure_cases.ShapeCounter(costs, cpu)
        )
        for case in cases
    }
    if host.name == THIS:
        return here
    by = scale(costs_of(host), costs)
    return {case: found.slower(by) for case, found in here.items()}


def scale(host: HostCosts, here: HostCosts) -> Constant:
    """Ratio of a host's software time to ours: that of L1 latencies, within a factor of 1.3."""
    from nearfar.model.map_work import Constant

    ratio = host.loads[0].value / here.loads[0].value
    return Constant(ratio, ratio / _SCALE_RANGE, ratio * _SCALE_RANGE)
