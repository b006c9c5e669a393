"""The C API of a simulated memory: its results are those of ``nearfar.SimulatedMemory``."""

from __future__ import annotations

import os
import random
import re
import shlex
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import nearfar
from conftest import RunNearfar
from nearfar.errors import BadInputError, MachineError
from nearfar.process import development
from nearfar.simulation.controller import Controller

ROOT = Path(__file__).parent.parent
EXAMPLE = ROOT / "examples" / "cosimulation"
LIBRARY = development.PKG_CONFIG_DIR.parent / "libnearfar-sim.so"
PROJECT = f"""
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES C)
find_package(nearfar REQUIRED)
add_executable(core {EXAMPLE}/core.c)
target_link_libraries(core PRIVATE nearfar::sim)
"""
OUTSTANDING, ACCESSES, LINES = 10, 100_000, 1 << 20  # of the example

CONTROLLERS: dict[str, tuple[dict[str, Any], int]] = {
    "default": ({}, 32),
    "closed": ({"page_policy": "closed", "write_drain": (8, 0, 3)}, 32),
    "timeout": ({"page_policy": "timeout", "timeout_ns": 33.3}, 4),
    "timeout at once": ({"page_policy": "timeout", "timeout_ns": 0}, 32),
    "fcfs": ({"scheduler": "fcfs", "mapping": "rochrababgco"}, 1),
    "cap": ({"row_hit_cap": 2, "mapping": "rocorababgch"}, 16),
}
DEVICES = ("ddr4-3200", "hbm3-6400", "ddr5-4800-same-bank", "pcm-lee", "cxl-ddr5")


def output_of(*command: str | Path, cwd: Path, text: str | None = None) -> str:
    environment = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment,
        input=text,
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def compiled(run_nearfar: RunNearfar, source: Path, folder: Path, *flags: str) -> Path:
    printed = run_nearfar("config", "sim", "--cflags", "--libs")
    assert printed.code == 0, printed.stderr
    program = folder / source.stem
    strict = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", *flags]
    output_of("gcc", *strict, source, *shlex.split(printed.stdout), "-o", program, cwd=folder)
    return program


@pytest.fixture
def cosimulate(run_nearfar: RunNearfar, tmp_path: Path) -> Path:
    return compiled(run_nearfar, Path(__file__).parent / "programs" / "cosimulate.c", tmp_path)


def exported(device: str, folder: Path) -> Path:
    return nearfar.export_device(device, folder / f"{device}.device")


def requests() -> list[tuple[int, int]]:
    """Runs of neighboring lines, and lines anywhere; some addresses are not those of a line."""
    chance = random.Random(11)
    chosen: list[tuple[int, int]] = []
    while len(chosen) < 4000:
        start, write = chance.randrange(1 << 34), int(chance.random() < 0.35)
        chosen += [(start + 64 * line, write) for line in range(chance.choice((1, 1, 9)))]
    return chosen


def driven(device: str, controller: Controller, read_queue: int) -> list[str]:
    """The output of ``tests/programs/cosimulate.c``, computed in Python."""
    memory = nearfar.SimulatedMemory(device, controller, read_queue)
    lines: list[str] = []
    last = 0

    def enqueued(number: int, address: int, write: int) -> bool:
        def done(_: int, clock: int) -> None:
            lines.append(f"done {number} {clock}")

        return memory.enqueue(address, write=bool(write), done=done)

    for number, (address, write) in enumerate(requests()):
        while not enqueued(number, address, write):
            memory.tick()
        lines.append(f"accepted {number} {memory.clock}")
        if last != write:
            memory.tick(3)
        last = write
    memory.tick(100_000)
    work = memory.finish()
    counts = (work.clocks, work.reads, work.writes, work.row_hits, work.activates, work.refreshes)
    lines.append(f"work {' '.join(map(str, counts))} {int(bool(work.energy_J))}")
    causes = ("activate", "array_write", "read", "write", "refresh", "background")
    spent = (f"{work.energy_J.get(f'{cause}_J', 0.0):.17g}" for cause in causes)
    return [*lines, f"energy {' '.join(spent)}"]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", CONTROLLERS)
def test_results_are_those_of_python(
    device: str, name: str, cosimulate: Path, tmp_path: Path
) -> None:
    settings, read_queue = CONTROLLERS[name]
    words = [f"read_queue={read_queue}"]
    for key, value in settings.items():
        words.append(f"{key}={':'.join(map(str, value)) if isinstance(value, tuple) else value}")
    given = "".join(f"{address} {write}\n" for address, write in requests())
    file = exported(device, tmp_path)
    printed = output_of(cosimulate, file, *words, cwd=tmp_path, text=given).splitlines()
    assert printed == driven(device, Controller(**settings), read_queue)
    assert sum(line.startswith("done") for line in printed) > 2000


@pytest.mark.parametrize("device", ["ddr4-3200", "ddr5-4800-same-bank", "hbm2-2000"])
@pytest.mark.parametrize("idle_ns", [(20, 300), (0, 300), (20, 0)])
def test_power_states_are_the_same_too(
    device: str, idle_ns: tuple[float, float], cosimulate: Path, tmp_path: Path
) -> None:
    sleeping = Controller(power_down_after_ns=idle_ns[0], self_refresh_after_ns=idle_ns[1])
    words = (f"power_down_after_ns={idle_ns[0]}", f"self_refresh_after_ns={idle_ns[1]}")
    given = "".join(f"{address} {write}\n" for address, write in requests())
    file = exported(device, tmp_path)
    printed = output_of(cosimulate, file, *words, cwd=tmp_path, text=given).splitlines()
    assert printed == driven(device, sleeping, 32)
    assert printed[-1] != driven(device, Controller(), 32)[-1]


def test_a_queue_is_the_same_too(cosimulate: Path, tmp_path: Path) -> None:
    given = "".join(f"{address} {write}\n" for address, write in requests())
    file = exported("optane-100-lens", tmp_path)
    printed = output_of(cosimulate, file, cwd=tmp_path, text=given).splitlines()
    assert printed == driven("optane-100-lens", Controller(), 32)


@dataclass
class Core:
    """The core of ``examples/cosimulation/core.c``."""

    memory: nearfar.SimulatedMemory
    random: int = 1
    in_flight: int = 0
    reads: int = 0
    waited: int = 0
    accesses: int = field(default=0)

    def address(self) -> int:
        self.random = (self.random * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        return (self.random >> 33) % LINES * 64

    def issue(self, address: int, write: bool) -> bool:
        if write:
            return self.memory.enqueue(address, write=True)
        issued_at = self.memory.clock

        def done(_: int, clock: int) -> None:
            self.in_flight -= 1
            self.waited += clock - issued_at
            self.reads += 1

        if self.in_flight == OUTSTANDING or not self.memory.enqueue(address, done=done):
            return False
        self.in_flight += 1
        return True

    def run(self) -> None:
        address = self.address()
        while self.accesses < ACCESSES or self.in_flight > 0:
            if self.accesses < ACCESSES and self.issue(address, self.accesses % 4 == 3):
                self.accesses += 1
                address = self.address()
            self.memory.tick()

    def report(self) -> str:
        work, clock_ns = self.memory.finish(), self.memory.clock_ns
        accesses = work.reads + work.writes
        return (
            f"{work.reads} reads, {work.writes} writes in {work.clocks} clocks of {clock_ns:g} ns\n"
            f"read latency {self.waited / self.reads * clock_ns:.1f} ns, "
            f"bandwidth {accesses * 64 / (work.clocks * clock_ns):.2f} GB/s, "
            f"row hits {100 * work.row_hits / accesses:.1f} %\n"
            f"energy {1e3 * sum(work.energy_J.values()):.3g} mJ\n"
        )


def test_the_example_is_a_core_in_python(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    program = compiled(run_nearfar, EXAMPLE / "core.c", tmp_path)
    core = Core(nearfar.SimulatedMemory("hbm2-2000"))
    core.run()
    assert output_of(program, exported("hbm2-2000", tmp_path), cwd=tmp_path) == core.report()


def test_the_header_is_c99_and_cxx(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    for name, command in (("a.c", "gcc -std=c99"), ("a.cpp", "g++ -std=c++11")):
        source = tmp_path / name
        source.write_text("#include <nearfar/sim.h>\nint main(void) { return 0; }\n")
        flags = run_nearfar("config", "sim", "--cflags").stdout
        strict = "-Wall -Wextra -Wpedantic -Wconversion -Werror -fsyntax-only"
        output_of(*command.split(), *strict.split(), source, *shlex.split(flags), cwd=tmp_path)


def test_cmake_finds_the_library(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    folder = run_nearfar("config", "--cmakedir").stdout.strip()
    (tmp_path / "CMakeLists.txt").write_text(PROJECT)
    output_of("cmake", "-S", ".", "-B", "build", f"-Dnearfar_DIR={folder}", cwd=tmp_path)
    output_of("cmake", "--build", "build", cwd=tmp_path)
    assert "reads" in output_of("build/core", exported("pcm-lee", tmp_path), cwd=tmp_path)


def test_the_library_needs_libc_and_exports_the_header() -> None:
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", output_of("readelf", "-d", LIBRARY, cwd=ROOT))
    assert set(needed) <= {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}
    symbols = output_of("nm", "-D", "--defined-only", LIBRARY, cwd=ROOT)
    header = (ROOT / "include" / "nearfar" / "sim.h").read_text()
    declared = set(re.findall(r"^NEARFAR_SIM_API .*?(nearfar_sim_\w+)\(", header, re.MULTILINE))
    assert set(re.findall(r" T (\w+)", symbols)) == declared


def test_errors_are_those_of_python(cosimulate: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [cosimulate, exported("ddr4-3200", tmp_path), "mapping=xx"],
        text=True,
        capture_output=True,
        check=False,
    )
    with pytest.raises(BadInputError) as refused:
        nearfar.SimulatedMemory(controller=Controller(mapping="xx"))
    assert done.returncode == 1
    assert done.stderr == f"{refused.value.what}; {refused.value.next_step}\n"


def test_a_profile_is_exported_once(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    done = run_nearfar("profile", "export", "hbm2-2000")
    assert (done.code, done.stderr) == (0, "device: hbm2-2000.device\n")
    again = run_nearfar("profile", "export", "hbm2-2000")
    again.assert_refused(2, "hbm2-2000.device exists")


def test_a_profile_that_cannot_be_simulated_is_not_exported(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="ddr4 has no figure"):
        nearfar.export_device("ddr4", tmp_path / "ddr4.device")
    with pytest.raises(MachineError, match="cannot write"):
        nearfar.export_device("hbm2-2000", tmp_path / "absent" / "a.device")
    assert list(tmp_path.iterdir()) == []
