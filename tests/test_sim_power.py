"""Power states of the shipped devices: times and energies computed by hand from their profiles."""

from __future__ import annotations

import json
import math

import pytest

import nearfar
from conftest import RunNearfar
from nearfar.errors import BadInputError
from nearfar.profiles import load_profile
from nearfar.records.profile import Profile
from nearfar.simulation.controller import Controller
from nearfar.simulation.devices import Device, resolve

POWER_DOWN = ("ddr4-3200", "hbm2-2000", "gddr6-12000", "ddr5-3200", "ddr5-4800-same-bank",
              "lpddr5-6400")  # fmt: skip
WITHOUT_CURRENTS = ("ddr5-3200", "lpddr5-6400")


def clocks(profile: Profile, timing: str) -> int:
    """A timing in whole clocks."""
    return math.ceil(profile.timing_ns(timing) / profile.scalar("clock_ns") - 0.01)


def read_after(
    device: str, controller: Controller, idle: int
) -> tuple[int, nearfar.SimulatedMemory]:
    """Clocks of a read of an open row that comes ``idle`` clocks after the first read's data."""
    memory = nearfar.SimulatedMemory(device, controller)
    done: list[int] = []
    for wait in (idle, 0):
        assert memory.enqueue(0, done=lambda _, clock: done.append(clock))
        while not memory.tick():
            pass
        memory.tick(wait)
    return done[1] - done[0] - idle, memory


@pytest.mark.parametrize("device", POWER_DOWN)
def test_a_read_wakes_its_rank_and_then_takes_its_time(device: str) -> None:
    profile = load_profile(device)
    hit = clocks(profile, "CL") + clocks(profile, "burst")
    # Less than the time between two refreshes of a device that refreshes banks one by one.
    idle = 250
    awake, _ = read_after(device, Controller(), idle)
    assert awake == hit
    asleep, _ = read_after(device, Controller(power_down_after_ns=10), idle)
    assert asleep == clocks(profile, "tXP") + hit
    restful = Controller(self_refresh_after_ns=1)
    refreshing, _ = read_after(device, restful, 8_300)  # no refresh is due in tXS
    assert refreshing == clocks(profile, "tXS") + clocks(profile, "tRCD") + hit


def test_the_energy_of_ddr5_in_power_down_and_in_self_refresh() -> None:
    device = Device.of(load_profile("ddr5-4800-same-bank"))
    volts = 1.1 * 4  # V, chips
    figures = resolve(load_profile("ddr5-4800-same-bank")).figures
    assert figures["power_down_W"] == pytest.approx(volts * 0.088)
    assert figures["active_power_down_W"] == pytest.approx(volts * 0.140)
    assert figures["self_refresh_W"] == pytest.approx(volts * 0.102)
    assert figures["refresh_J"] == pytest.approx(volts * (0.135 - 0.092) * 130e-9)
    assert device.has_energy
    # Two channels. One is idle for all the time, the other has one row open from the first read.
    _, memory = read_after("ddr5-4800-same-bank", Controller(power_down_after_ns=0), 250)
    work, clock_s = memory.finish(), 0.416e-9
    end = work.clocks * clock_s
    first, second = 34 + 34 + 8, 18 + 34 + 8  # tRCD, CL, burst; tXP, CL, burst
    assert work.clocks == first + 250 + second
    awake = (first + second) * clock_s
    least = volts * (end * 0.088 + awake * 0.142 + (end - awake) * 0.140)
    assert work.energy_J["background_J"] == pytest.approx(least, rel=0.02)


@pytest.mark.parametrize("device", WITHOUT_CURRENTS)
def test_a_device_without_currents_has_times_of_its_states_alone(
    device: str, run_nearfar: RunNearfar
) -> None:
    done = run_nearfar(
        *("sim", "--pattern", "random", "--requests", "1000", "--far", device, "--near", device),
        *("--engine", "exact", "--core", "blocking", "--power-down-after", "0", "--json", "-"),
    )
    found = json.loads(done.stdout)
    far = found["tiers"]["far"]
    assert far["power_down_s"] + far["active_power_down_s"] > 0
    assert "energy_J" not in far
    assert any(f"{device} has no energy figures" in limit for limit in found["limits"])


def test_a_device_without_published_states_is_refused(run_nearfar: RunNearfar) -> None:
    stream = ("sim", "--pattern", "random", "--far", "hbm3-6400", "--near", "hbm3-6400")
    done = run_nearfar(*stream, "--engine", "exact", "--power-down-after", "10")
    done.assert_refused(2, "no device has power-down (tXP): hbm3-6400")
    assert "add tXP with its source to a copy of the profile" in done.stderr
    with pytest.raises(BadInputError, match="tXS"):
        nearfar.SimulatedMemory("hbm3-6400", Controller(self_refresh_after_ns=10))
