"""``nearfar doctor --tiers``: claims of firmware and kernel, compared with a short measurement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nearfar.machine.doctor.findings import ok
from nearfar.records.run import Finding
from nearfar.units import MIB

if TYPE_CHECKING:
    from nearfar.machine.model import Machine
    from nearfar.measure.progress import ProgressSource
    from nearfar.measure.session import Session
    from nearfar.records.matrix import MatrixResult

#: Seconds for each path between two nodes.
_PATH_S = 1.5
#: Beyond last caches; several epochs on it take a second.
_MAX_REGION = 256 * MIB


@dataclass(frozen=True)
class CheckedClaims:
    """Findings, and the measured matrix; None on a machine of one node, where nothing is timed."""

    findings: list[Finding]
    matrix: MatrixResult | None = None


def check_claims(progress: ProgressSource) -> CheckedClaims:
    """Measure all paths between nodes, and compare what is claimed of them."""
    from nearfar.machine.doctor.claims import examine_claims
    from nearfar.machine.root import Root
    from nearfar.machine.topology import this_machine
    from nearfar.measure.matrix import memory_nodes
    from nearfar.workflows.recording import open_session

    machine = this_machine()
    if len(memory_nodes(machine)) < 2:
        found = "this machine has one memory node: there is nothing to compare, nothing was timed"
        return CheckedClaims([ok("claims on memory nodes", found)])
    with open_session(progress) as session:
        matrix = _measured(machine, session)
    return CheckedClaims(examine_claims(machine, Root(), matrix), matrix)


def _measured(machine: Machine, session: Session) -> MatrixResult:
    from nearfar.measure import latency, matrix
    from nearfar.measure.session import Effort

    reported = machine.last_cache_bytes()
    region = min(latency.default_region(reported), _MAX_REGION)
    cache = reported or latency.ASSUMED_CACHE
    plan = matrix.plan_of(machine, machine.cores_first(), region, cache)
    budget_s = _PATH_S * len(plan.cpus) * len(plan.memories)
    return matrix.measure(session, plan, Effort(budget_s, apart=False))
