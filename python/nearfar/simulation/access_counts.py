"""Counts mode: time and energy of a program from its number of accesses to two memories.

Equations, for accesses of one burst each, one after another, each to a closed row:

    t_read  = tRCD + CL + t_burst
    t_write = tRCD + t_burst + tRP      blocking: the program waits until the cells are written
            = t_burst                   posted: the program waits for the bus only
    T = T_cpu + Σ reads·t_read + writes·t_write

    E_read  = V·(I_array·tRCD + I_buffer·t_burst)
    E_write = V·(I_array·(tRCD + tRP) + I_buffer·t_burst)
    E = Σ reads·E_read + writes·E_write + V·T·(I_standby of both + I_refresh·tRFC/tREFI)

Source: the Seoul thesis on user-controlled hybrid memory allocation (2014), whose figures are the
profiles dram-snu, pcm-snu-ns and pcm-snu-cycles. The thesis prints no CL, burst and voltage; they
are those of the simulator that it used. It does not print row policy and write policy either:
closed rows and blocking writes are inferred, because they reproduce its gains.
Limits: no row hits and no overlap of accesses. Posted writes never fill a queue, so that their time
is a lower bound. The precharge after a read is hidden.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from nearfar.errors import BadInputError
from nearfar.files import read_text
from nearfar.records.choices import WritePolicy
from nearfar.records.figures import Origin, Provenance, with_origin
from nearfar.records.profile import Profile
from nearfar.records.simulation import CountsModeTier, CountsModeTiers, CountsSimulation
from nearfar.simulation.device_keys import refuse_unknown

_NS = 1e-9
_PJ = 1e-12  # V·mA·ns
_REFRESH = ("tRFC", "tREFI")
_LIMITS = {
    "blocking": "closed pages, one access after another: no row hits, no overlap",
    "posted": "closed pages; the write queue is never full, so the time of writes is a lower bound",
}
#: Doubles cannot represent all larger integers.
_MAX_ACCESSES = 2**53

_Accesses = Annotated[int, Field(ge=0, le=_MAX_ACCESSES, strict=True)]


class TierAccessCounts(BaseModel):
    """Accesses of one tier, one cache line each."""

    model_config = ConfigDict(extra="forbid")

    reads: _Accesses
    writes: _Accesses


class AccessCounts(BaseModel):
    """Accesses of both tiers, as reported by a simulator or counters."""

    model_config = ConfigDict(extra="forbid")

    near: TierAccessCounts
    far: TierAccessCounts


def read_access_counts(path: str | Path) -> AccessCounts:
    """Read a file of counts. Raises BadInputError with the position of the error."""
    form = '{"near": {"reads": N, "writes": N}, "far": {"reads": N, "writes": N}}'
    text = read_text(path, f"write {form}")
    try:
        return AccessCounts.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise BadInputError(f"{path}: {where}: {first['msg']}", f"write {form}") from None


@dataclass(frozen=True)
class AccessCosts:
    """Time and energy of an access to one memory, from its figures.

    ``refresh_mA`` is averaged over tREFI.
    """

    name: str
    tRCD_ns: float  # noqa: N815 - JEDEC's names
    tRP_ns: float  # noqa: N815
    CL_ns: float
    burst_ns: float
    vdd_V: float  # noqa: N815 - volt and ampere are capitals
    array_mA: float  # noqa: N815
    read_buffer_mA: float  # noqa: N815
    write_buffer_mA: float  # noqa: N815
    standby_mA: float  # noqa: N815
    refresh_mA: float  # noqa: N815

    @classmethod
    def of(cls, profile: Profile) -> AccessCosts:
        """Create from a profile. Raises BadInputError for missing or contradictory figures."""
        refuse_unknown(profile)
        return cls(
            name=profile.name,
            tRCD_ns=profile.timing_ns("tRCD"),
            tRP_ns=profile.timing_ns("tRP"),
            CL_ns=profile.timing_ns("CL"),
            burst_ns=profile.timing_ns("burst"),
            vdd_V=profile.scalar("vdd_V"),
            array_mA=profile.scalar("array_current_mA"),
            read_buffer_mA=profile.scalar("row_buffer_read_current_mA"),
            write_buffer_mA=profile.scalar("row_buffer_write_current_mA"),
            standby_mA=profile.scalar("active_standby_current_mA"),
            refresh_mA=_refresh_mA(profile),
        )

    def read_ns(self) -> float:
        """Time for which a read stalls the program."""
        return self.tRCD_ns + self.CL_ns + self.burst_ns

    def write_ns(self, policy: WritePolicy) -> float:
        """Time for which a write stalls the program."""
        return self.burst_ns if policy == "posted" else self.tRCD_ns + self.burst_ns + self.tRP_ns

    def read_joules(self) -> float:
        """Energy of one read, excluding background power."""
        return self._joules(self.tRCD_ns, self.read_buffer_mA)

    def write_joules(self) -> float:
        """Energy of one write, including the write of the cells."""
        return self._joules(self.tRCD_ns + self.tRP_ns, self.write_buffer_mA)

    def _joules(self, array_ns: float, buffer_mA: float) -> float:  # noqa: N803
        return self.vdd_V * (self.array_mA * array_ns + buffer_mA * self.burst_ns) * _PJ

    def joules_over(self, current_mA: float, seconds: float) -> float:  # noqa: N803
        """Energy of a current over a time."""
        return self.vdd_V * current_mA * seconds / _NS * _PJ


def _refresh_mA(profile: Profile) -> float:  # noqa: N802
    """Mean refresh current; 0 without refresh. Requires all figures of refresh, or none."""
    keys = [*(f"{name}_ns" for name in _REFRESH), "refresh_current_mA"]
    given = {
        key: key in profile.figures or key.replace("_ns", "_cycles") in profile.figures
        for key in keys
    }
    if not any(given.values()):
        return 0.0
    for key, there in given.items():
        if not there:
            others = " and ".join(k for k, known in given.items() if known)
            raise BadInputError(
                f"the device {profile.name} has {others}, and no {key}",
                "give all three figures of refresh, or none for a memory without refresh",
            )
    busy, interval = (profile.timing_ns(name) for name in _REFRESH)
    if busy >= interval:
        raise BadInputError(
            f"tRFC = {busy:g} ns of the device {profile.name} is not less than its tREFI = "
            f"{interval:g} ns",
            "fix one of them in the profile",
        )
    return profile.scalar("refresh_current_mA") * busy / interval


def simulate(
    counts: AccessCounts,
    near: Profile,
    far: Profile,
    *,
    cpu_time_s: float,
    write_policy: WritePolicy,
) -> CountsSimulation:
    """Time and energy of the counted accesses plus ``cpu_time_s`` of CPU time.

    Raises BadInputError if a profile lacks a figure or contradicts itself.
    """
    pairs = ((counts.near, AccessCosts.of(near)), (counts.far, AccessCosts.of(far)))
    memory_s = sum(sum(_stalls(*pair, write_policy)) for pair in pairs)
    total_s = cpu_time_s + memory_s
    tiers = [_tier_result(*pair, write_policy, total_s) for pair in pairs]
    energy = sum(
        t.read_energy_J + t.write_energy_J + t.standby_energy_J + t.refresh_energy_J for t in tiers
    )
    simulated = Provenance(
        origin=Origin.SIMULATED, statistic="simulation", samples=0, note=_LIMITS[write_policy]
    )
    given = simulated.model_copy(update={"note": "given with --cpu-time-s"})
    return CountsSimulation(
        page_policy="closed",
        write_policy=write_policy,
        time_s=total_s,
        energy_J=energy,
        cpu_time_s=cpu_time_s,
        memory_time_s=memory_s,
        tiers=CountsModeTiers(near=tiers[0], far=tiers[1]),
        limits=[_LIMITS[write_policy]],
        provenance={
            **dict.fromkeys(("time_s", "energy_J", "memory_time_s"), simulated),
            "cpu_time_s": given,
        },
    )


def _stalls(
    count: TierAccessCounts, costs: AccessCosts, write_policy: WritePolicy
) -> tuple[float, float]:
    """Seconds of the reads and of the writes of one tier."""
    reads_s = count.reads * costs.read_ns() * _NS
    return reads_s, count.writes * costs.write_ns(write_policy) * _NS


def _tier_result(
    count: TierAccessCounts, costs: AccessCosts, write_policy: WritePolicy, total_s: float
) -> CountsModeTier:
    reads_s, writes_s = _stalls(count, costs, write_policy)
    work = CountsModeTier(
        device=costs.name,
        reads=count.reads,
        writes=count.writes,
        read_time_s=reads_s,
        write_time_s=writes_s,
        read_energy_J=count.reads * costs.read_joules(),
        write_energy_J=count.writes * costs.write_joules(),
        standby_energy_J=costs.joules_over(costs.standby_mA, total_s),
        refresh_energy_J=costs.joules_over(costs.refresh_mA, total_s),
    )
    note = _LIMITS[write_policy]
    return with_origin(
        work,
        Provenance(origin=Origin.SIMULATED, statistic="simulation", samples=0, note=note),
    )
