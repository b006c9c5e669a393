"""Build a simulated device from a device profile.

A profile with a command timing is simulated with commands: banks, rows, JEDEC timings. Any other
profile is simulated as a queue in front of a medium, with buffers if it has figures of them. A
missing or unknown figure is an error that names the key.

Energy is computed from the first of these figures that a profile has:

    IDD0 … IDD5   as Micron's technical notes compute it, for ``chips`` chips:
                  activate = V·(IDD0·(tRAS+tRP) - IDD3N·tRAS - IDD2N·tRP)
                  read, write = V·(IDD4 - IDD3N)·burst, refresh = V·(IDD5 - IDD3N)·tRFC; of the
                  same bank of all groups V·(IDD5C - IDD2N)·tRFC, measured with all rows closed
                  background = V·IDD3N with an open row, V·IDD2N without; in power-down V·IDD3P
                  and V·IDD2P; in self-refresh V·IDD6
    array and row-buffer currents   as in counts mode: activate = V·I_array·tRCD, array write =
                  V·I_array·tRP, read, write = V·I_buffer·burst; background = V·(active standby
                  current) with an open row, V·(precharge power-down current) without
    pJ/bit        activate = array read energy of a row, read = row buffer read energy of a line,
                  write = array and row buffer write energy of a line. Without figures of the row
                  buffer: read, write = array energy of a line. No background power: the total is
                  a lower bound
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from nearfar.errors import BadInputError
from nearfar.simulation.device_keys import TIMINGS, refuse_unknown

if TYPE_CHECKING:
    from nearfar._native import SimDevice
    from nearfar.records.profile import Profile
    from nearfar.simulation.controller import Controller

_PJ = 1e-12  # V·mA·ns
_WATTS = 1e-3  # V·mA
_LINE_BITS = 512
_REQUIRED = ("tRCD", "tRP", "tRAS", "CL", "CWL", "burst", "tCCD", "tWTR", "tWR", "tRTP")
#: A figure of each energy model, in order of preference.
_ENERGIES = ("IDD0_mA", "array_current_mA", "read_energy_pJ_per_bit")
#: The counts of a device with command timings.
_ORGANIZATION = ("channels", "ranks", "bank_groups", "banks", "row_bytes")
_OPTIONAL_ORGANIZATION = ("command_buses", "command_clocks", "refresh_sets")


class Name(NamedTuple):
    """A figure of the engines, and its key in the profile."""

    figure: str
    key: str


_LATENCIES = (
    Name("read_latency", "read_latency_ns"),
    Name("write_latency", "write_latency_ns"),
)
_BANDWIDTHS = (
    Name("read_bandwidth", "read_bandwidth_bytes_per_s"),
    Name("write_bandwidth", "write_bandwidth_bytes_per_s"),
)
#: The kernels that a probe uses for reads and writes.
_KERNELS = {"read_bandwidth": "read", "write_bandwidth": "ntwrite"}
#: Bytes moved per byte counted of a copy with write-allocate: it counts a line read and a line
#: written, and each store also reads the line that it writes.
_ALLOCATING_COPY = 1.5
_LINK = (
    Name("link_latency", "link_latency_ns"),
    Name("link_bandwidth", "link_bandwidth_bytes_per_s"),
    Name("link_queue_depth", "link_queue_depth"),
)


_LINK_LOADS = "link_latency_by_load_ns"


class Resolved(NamedTuple):
    """A profile for the engines: kind of memory, and figures by the names of the engines."""

    kind: Literal["commands", "queued"]
    figures: dict[str, float]


@dataclass(frozen=True)
class Device:
    """A profile in the format of the engines, and which of its figures are known."""

    name: str
    native: SimDevice
    has_energy: bool
    has_background: bool
    has_rows: bool  # it has command timings
    endurance_writes: float | None
    parallelism: int | None = None  # measured outstanding misses of a core
    has_power_down: bool = False
    has_self_refresh: bool = False
    is_pcm: bool = False  # it wears, or has commands and no refresh

    @classmethod
    def of(cls, profile: Profile, *, one_thread: bool = False) -> Device:
        """Create from a profile. ``one_thread``: with the bandwidth of one thread, if measured.

        Raises BadInputError that names a missing or contradictory figure.
        """
        from nearfar import _native

        kind, figures = resolve(profile, one_thread=one_thread)
        endurance, parallel = "endurance_writes", "read_parallelism"
        return cls(
            name=profile.name,
            native=_native.SimDevice(profile.name, kind, list(figures.items())),
            has_energy=has_energy(profile),
            has_background="active_W" in figures,
            has_rows=kind == "commands",
            endurance_writes=profile.scalar(endurance) if endurance in profile.figures else None,
            parallelism=round(profile.scalar(parallel)) if parallel in profile.figures else None,
            has_power_down=_has(profile, "tXP"),
            has_self_refresh=_has(profile, "tXS"),
            is_pcm=endurance in profile.figures
            or (kind == "commands" and not _has(profile, "tREFI")),
        )


def refuse_without_states(controller: Controller, *devices: Device) -> None:
    """Raise BadInputError for a power state that none of the devices has."""
    names = " and ".join(dict.fromkeys(device.name for device in devices))
    for asked, figure, known in (
        (controller.power_down_after_ns, "tXP", any(d.has_power_down for d in devices)),
        (controller.self_refresh_after_ns, "tXS", any(d.has_self_refresh for d in devices)),
    ):
        if asked is not None and not known:
            state = "power-down" if figure == "tXP" else "self-refresh"
            raise BadInputError(
                f"no device has {state} ({figure}): {names}",
                "omit the setting, choose a device with this state, such as ddr4-3200, or add "
                f"{figure} with its source to a copy of the profile",
            )


def resolve(profile: Profile, *, one_thread: bool = False) -> Resolved:
    """Resolve a profile to figures of the engines, which the core has to check.

    Raises BadInputError that names a missing or unknown figure.
    """
    refuse_unknown(profile)
    by_commands = any(_has(profile, timing) for timing in TIMINGS)
    figures = _by_commands(profile) if by_commands else _queued(profile, one_thread)
    for figure, key in _LINK:
        if key in profile.figures:
            figures[figure] = profile.scalar(key)
    figures |= _link_loads(profile)
    energy = _energy(profile, figures)
    return Resolved("commands" if by_commands else "queued", {**figures, **energy})


def has_energy(profile: Profile) -> bool:
    """Whether a profile has figures for any energy model."""
    return any(key in profile.figures for key in _ENERGIES)


def _has(profile: Profile, timing: str) -> bool:
    return f"{timing}_ns" in profile.figures or f"{timing}_cycles" in profile.figures


def _by_commands(profile: Profile) -> dict[str, float]:
    timings = {
        timing: profile.timing_ns(timing)
        for timing in TIMINGS
        if timing in _REQUIRED or _has(profile, timing)
    }
    # tRRDact: name of tRRD in profiles that separate reads from array writes
    activate = timings.pop("tRRDact", None)
    if "tRRD" not in timings:
        timings["tRRD"] = profile.timing_ns("tRRD") if activate is None else activate
    organization = {key: profile.scalar(key) for key in _ORGANIZATION}
    organization |= {
        key: profile.scalar(key) for key in _OPTIONAL_ORGANIZATION if key in profile.figures
    }
    _check_size(profile, organization)
    return {"clock": profile.scalar("clock_ns"), **timings, **organization}


def _link_loads(profile: Profile) -> dict[str, float]:
    """Points of the link's latency by load."""
    if _LINK_LOADS not in profile.figures:
        return {}
    figures = {}
    for place, (bandwidth, latency) in enumerate(profile.curve(_LINK_LOADS)):
        figures[f"link_load{place}_bandwidth"] = bandwidth
        figures[f"link_load{place}_latency"] = latency
    return figures


def _check_size(profile: Profile, organization: Mapping[str, float]) -> None:
    """Raise BadInputError unless the size of a rank is that of its banks, if both are given."""
    if not {"rank_bytes", "bank_bytes"} <= profile.figures.keys():
        return
    rank, bank = profile.scalar("rank_bytes"), profile.scalar("bank_bytes")
    banks = organization["bank_groups"] * organization["banks"]
    if rank != bank * banks:
        raise BadInputError(
            f"rank_bytes of {profile.name} is {rank:g}, but {banks:g} banks of bank_bytes = "
            f"{bank:g} have {bank * banks:g} bytes",
            "fix one of them in the profile",
        )


def _queued(profile: Profile, one_thread: bool) -> dict[str, float]:
    figures = {figure: profile.scalar(key) for figure, key in _LATENCIES}
    for figure, key in _BANDWIDTHS:
        alone = profile.bandwidth_alone(_KERNELS[figure]) if one_thread else None
        figures[figure] = alone or profile.scalar(key)
    both = _both_ways(profile, one_thread, figures["read_bandwidth"])
    if both:
        figures["both_bandwidth"] = max(both, *(figures[figure] for figure, _ in _BANDWIDTHS))
    if "access_unit_bytes" in profile.figures:
        figures["access_unit_bytes"] = profile.scalar("access_unit_bytes")
    if "buffer_by_level_bytes" not in profile.figures:
        return figures
    sizes = profile.curve("buffer_by_level_bytes")
    entries = dict(profile.curve("buffer_entry_by_level_bytes"))
    latencies = dict(profile.curve("buffered_read_latency_by_level_ns"))
    for place, (level, size) in enumerate(sizes):
        for key, of_level in (
            ("buffer_entry_by_level_bytes", entries),
            ("buffered_read_latency_by_level_ns", latencies),
        ):
            if level not in of_level:
                raise BadInputError(
                    f"{key} of {profile.name} lacks level {level:g} of buffer_by_level_bytes",
                    "add the level to a copy of the profile",
                )
        figures[f"buffer{place}_bytes"] = size
        figures[f"buffer{place}_entry_bytes"] = entries[level]
        figures[f"buffer{place}_latency"] = latencies[level]
    return figures


def _both_ways(profile: Profile, one_thread: bool, read_bytes_per_s: float) -> float | None:
    """B/s of concurrent reads and writes, if measured."""
    if "bandwidth_by_read_share_bytes_per_s" in profile.figures:
        return max(rate for _, rate in profile.curve("bandwidth_by_read_share_bytes_per_s"))
    copied = profile.bandwidth_alone("copy") if one_thread else None
    if copied is None and "copy_bandwidth_bytes_per_s" in profile.figures:
        copied = profile.scalar("copy_bandwidth_bytes_per_s")
    if copied is None:
        return None
    # With write-allocate, a copy reads as many bytes as it counts, so that reads alone are at least
    # as fast. A copy that is faster than reads used non-temporal stores, which read nothing.
    return copied * _ALLOCATING_COPY if copied <= read_bytes_per_s else copied


def _energy(profile: Profile, figures: dict[str, float]) -> dict[str, float]:
    by_command, by_array, by_bit = _ENERGIES
    if by_command in profile.figures:
        return _from_idd(profile, figures)
    if by_array in profile.figures:
        return _from_array_currents(profile, figures)
    if by_bit in profile.figures:
        return _from_bits(profile, figures)
    return {}


def _from_idd(profile: Profile, t: dict[str, float]) -> dict[str, float]:
    volts = profile.scalar("vdd_V") * profile.scalar("chips")
    names = ("IDD0", "IDD2N", "IDD3N", "IDD4R", "IDD4W")
    idd0, idd2n, idd3n, idd4r, idd4w = (profile.scalar(f"{name}_mA") for name in names)
    for name, current in (("IDD4R", idd4r), ("IDD4W", idd4w)):
        if current < idd3n:
            raise BadInputError(
                f"{name}_mA of {profile.name} is {current:g}, less than IDD3N_mA = {idd3n:g}: the "
                "energy of an access would be negative",
                "fix one of them in the profile",
            )
    activate = idd0 * (t["tRAS"] + t["tRP"]) - idd3n * t["tRAS"] - idd2n * t["tRP"]
    energy = {
        "activate_J": volts * max(activate, 0.0) * _PJ,
        "read_J": volts * (idd4r - idd3n) * t["burst"] * _PJ,
        "write_J": volts * (idd4w - idd3n) * t["burst"] * _PJ,
        "active_W": volts * idd3n * _WATTS,
        "idle_W": volts * idd2n * _WATTS,
    }
    if "tXP" in t:
        energy["active_power_down_W"] = volts * profile.scalar("IDD3P_mA") * _WATTS
        energy["power_down_W"] = volts * profile.scalar("IDD2P_mA") * _WATTS
    if "tXS" in t:
        energy["self_refresh_W"] = volts * profile.scalar("IDD6_mA") * _WATTS
    if "tRFC" in t:
        energy["refresh_J"] = volts * _refresh_mA(profile, idd2n, idd3n) * t["tRFC"] * _PJ
    return energy


def _refresh_mA(profile: Profile, idd2n: float, idd3n: float) -> float:  # noqa: N802
    """Additional current of a refresh."""
    same_bank = "IDD5C_mA"
    if same_bank in profile.figures:
        return profile.scalar(same_bank) - idd2n
    return profile.scalar("IDD5_mA") - idd3n


def _from_bits(profile: Profile, t: dict[str, float]) -> dict[str, float]:
    read, write = (profile.scalar(f"{kind}_energy_pJ_per_bit") for kind in ("read", "write"))
    buffer = "row_buffer_read_energy_pJ_per_bit"
    if buffer not in profile.figures:
        return {"read_J": read * _LINE_BITS * 1e-12, "write_J": write * _LINE_BITS * 1e-12}
    into = profile.scalar("row_buffer_write_energy_pJ_per_bit")
    return {
        "activate_J": read * t["row_bytes"] * 8e-12,
        "read_J": profile.scalar(buffer) * _LINE_BITS * 1e-12,
        "write_J": (write + into) * _LINE_BITS * 1e-12,
    }


def _from_array_currents(profile: Profile, t: dict[str, float]) -> dict[str, float]:
    volts = profile.scalar("vdd_V")
    array = profile.scalar("array_current_mA")
    energy = {
        "activate_J": volts * array * t["tRCD"] * _PJ,
        "array_write_J": volts * array * t["tRP"] * _PJ,
        "read_J": volts * profile.scalar("row_buffer_read_current_mA") * t["burst"] * _PJ,
        "write_J": volts * profile.scalar("row_buffer_write_current_mA") * t["burst"] * _PJ,
        "active_W": volts * profile.scalar("active_standby_current_mA") * _WATTS,
        "idle_W": volts * profile.scalar("precharge_power_down_current_mA") * _WATTS,
    }
    if "tRFC" in t:
        energy["refresh_J"] = volts * profile.scalar("refresh_current_mA") * t["tRFC"] * _PJ
    return energy
