"""Words about simulations that the terminal and the report share."""

from __future__ import annotations

from nearfar.records.simulation import ControllerSettings, Simulation

_DEFAULTS = ControllerSettings(
    scheduler="fr-fcfs", row_hit_cap=None, write_drain=(32, 16, 1), address_mapping="rorabacobgch"
)


def controller_words(result: Simulation) -> str:
    """Return the page policy, and the settings of the controllers that are not the defaults."""
    words = [f"rows {result.page_policy}"]
    if (settings := result.controller) is None:
        return words[0]
    if settings.timeout_ns is not None:
        words[0] += f" after {settings.timeout_ns:g} ns"
    if settings.scheduler != _DEFAULTS.scheduler:
        words.append(f"scheduler {settings.scheduler.upper()}")
    if settings.row_hit_cap:
        words.append(f"at most {settings.row_hit_cap} row hits before an older request")
    if settings.write_drain != _DEFAULTS.write_drain:
        words.append("writes drained from {} to {}, idle from {}".format(*settings.write_drain))
    for state, after in (
        ("power-down", settings.power_down_after_ns),
        ("self-refresh", settings.self_refresh_after_ns),
    ):
        if after is not None:
            words.append(f"{state} after {after:g} ns")
    if settings.address_mapping != _DEFAULTS.address_mapping:
        words.append(f"addresses {settings.address_mapping}")
    return ", ".join(words)


#: Fraction of CPU time from which a program is called compute-bound.
_COMPUTE_BOUND = 0.9


def energy_words(result: Simulation) -> str:
    """Return of which memories the total energy is."""
    return "both memories" if result.energy_of == "both" else f"{result.energy_of} memory"


def memory_wait_s(result: Simulation) -> float:
    """Return the part of the run time in which the program waits for memory."""
    return max(result.time_s - result.cpu_time_s - result.stall_s, 0.0)


def bound_words(result: Simulation) -> str:
    """Return that another memory changes little, where the run time is CPU time; or nothing."""
    if not result.time_s or result.cpu_time_s < _COMPUTE_BOUND * result.time_s:
        return ""
    waits = memory_wait_s(result) / result.time_s
    return (
        f"Compute-bound: {result.cpu_time_s / result.time_s:.1%} of the time is CPU time between "
        f"requests; a faster memory can save at most {waits:.1%}."
    )
