"""A simulated memory that the caller drives, clock by clock."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

import nearfar
from nearfar.errors import BadInputError, NearfarError
from nearfar.simulation.controller import Controller

REFERENCE = Path(__file__).parent.parent / "docs" / "reference" / "python.md"


def test_a_read_takes_tRCD_CL_and_a_burst() -> None:  # noqa: N802
    memory = nearfar.SimulatedMemory("ddr4-3200")
    done: list[tuple[int, int]] = []
    assert memory.enqueue(0x1040, done=lambda address, clock: done.append((address, clock)))
    assert memory.tick(47) == 0
    assert memory.tick() == 1
    assert done == [(0x1040, 22 + 22 + 4)]
    assert (memory.clock, memory.clock_ns) == (48, 0.625)


@pytest.mark.parametrize("device", ["ddr4-3200", "hbm3-6400", "cxl-ddr5", "optane-100-lens"])
def test_every_read_completes_once_and_is_counted(device: str) -> None:
    memory = nearfar.SimulatedMemory(device, read_queue=8)
    chance = random.Random(5)
    wanted = [(chance.randrange(1 << 30) & ~63, chance.random() < 0.3) for _ in range(3000)]
    done: list[int] = []
    clocks: list[int] = []

    def arrived(address: int, clock: int) -> None:
        done.append(address)
        clocks.append(clock)

    for address, write in wanted:
        while not memory.enqueue(address, write=write, done=arrived):
            assert not memory.accepts(address, write=write)
            memory.tick()
    while len(done) < sum(not write for _, write in wanted):
        memory.tick(100)
    assert sorted(done) == sorted(address for address, write in wanted if not write)
    assert clocks == sorted(clocks)
    work = memory.finish()
    assert work.reads == len(done)
    assert work.writes == len(wanted) - len(done)
    assert work.clocks == memory.clock
    assert bool(work.energy_J) == (device == "ddr4-3200")
    assert not memory.enqueue(0)
    assert memory.finish() == work


def test_bad_devices_and_controllers_are_refused() -> None:
    with pytest.raises(NearfarError, match="no such"):
        nearfar.SimulatedMemory("no such")
    with pytest.raises(BadInputError, match="read_queue 0"):
        nearfar.SimulatedMemory(read_queue=0)
    with pytest.raises(BadInputError, match="address mapping 'xx'"):
        nearfar.SimulatedMemory(controller=Controller(mapping="xx"))


def test_the_example_of_the_reference_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", REFERENCE.read_text(), re.DOTALL)
    exec(example, {})
    assert re.search(r"64 reads, the last at clock \d+\n\d+ row hits", capsys.readouterr().out)
