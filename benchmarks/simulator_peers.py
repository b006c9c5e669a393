"""The exact engine against the clocks that another simulator takes for the same streams.

.venv/bin/python benchmarks/simulator_peers.py streams DIR
    writes eight streams of 40,000 requests in 1 GiB, in DRAMsim3's format, all at cycle 0
.venv/bin/python benchmarks/simulator_peers.py compare DIR CLOCKS.json
    compares; CLOCKS.json has the peer's settings and results:
    {"peer": NAME, "device": NAME, "figures": {KEY: VALUE, ...} that differ from the device's,
     "mapping": FIELDS, "write_drain": [FROM, TO, IDLE], "row_hit_cap": N or null,
     "clocks": {"seq": {"16": CLOCKS, ...}, ...},
     "energy_16": {"seq": {"activates": N, "activate_J": J, ...}, ...}} with 16 reads in flight
    benchmarks/peers/ has those of Ramulator 2.1 and DRAMsim3, whose energies are printed in
    V mA clocks
.venv/bin/python benchmarks/simulator_peers.py energy DIR CLOCKS.json
    compares energies, and the number of activates

The peer's driver sends requests in the order of the stream as early as it takes them, with at most
so many reads in flight, retired in order; writes do not wait. A link of a clock's length stands for
the clocks that a request spends in the peer's queues.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nearfar import _native
from nearfar.profiles import load_profile
from nearfar.records.profile import Figure, unit_of
from nearfar.simulation.controller import Controller
from nearfar.simulation.devices import Device
from nearfar.simulation.placements import Placement
from nearfar.simulation.run import Options, run
from nearfar.workflows.tracing import import_trace

REQUESTS = 40_000
LINES = 1 << 24
Request = tuple[int, bool]
#: A stream, and by name how much more nearfar has.
Rows = Iterator[tuple[str, dict[str, float]]]


def streams(chance: random.Random) -> dict[str, list[Request]]:
    """Lines and directions by name of the stream."""
    third = LINES // 3

    def anywhere(writes: float) -> list[Request]:
        return [(chance.randrange(LINES), chance.random() < writes) for _ in range(REQUESTS)]

    every = range(REQUESTS)
    return {
        "seq": [(i, False) for i in every],
        "rand": anywhere(0),
        "seqw": [(i, chance.random() < 0.3) for i in every],
        "randw": anywhere(0.3),
        "stride": [(i * 65 % LINES, False) for i in every],
        "streams": [(i % 3 * third + i // 3, i % 3 == 2) for i in every],
        "hot": [(chance.randrange(64) * 4096 + chance.randrange(16), False) for _ in every],
        "mixw": anywhere(0.6),
    }


def write_streams(folder: Path) -> None:
    """One file for each stream."""
    folder.mkdir(exist_ok=True)
    for name, requests in streams(random.Random(1)).items():
        lines = (f"0x{line * 64:x} {'WRITE' if w else 'READ'} 0\n" for line, w in requests)
        (folder / name).write_text("".join(lines))


def outcome_of(
    file: Path, device: Device, controller: Controller, window: int
) -> _native.SimOutcome:
    """Simulate a stream."""
    with tempfile.TemporaryDirectory() as scratch:
        trace = Path(scratch) / "trace"
        import_trace(file, "dramsim3", trace)
        source = _native.TraceSource(str(trace), 0.0, [])
        options = Options(controller=controller, window=window)
        outcome, _ = run(source, device, device, Placement("all-far"), options, "exact")
    return outcome


def device_of(name: str, figures: dict[str, float]) -> Device:
    """The device with the peer's figures."""
    profile = load_profile(name)
    changed = {
        key: Figure(
            unit=unit_of(key) or "", value=value, source=next(iter(profile.sources)), confidence="C"
        )
        for key, value in figures.items()
    }
    return Device.of(profile.model_copy(update={"figures": {**profile.figures, **changed}}))


def settings_of(given: dict[str, Any]) -> tuple[Device, Controller]:
    """The peer's device and controller."""
    controller = Controller(
        row_hit_cap=given["row_hit_cap"],
        write_drain=tuple(given["write_drain"]),
        mapping=given["mapping"],
    )
    return device_of(given["device"], given["figures"]), controller


def clocks(folder: Path, given: dict[str, Any]) -> Rows:
    """By stream: window, and our clocks over the peer's, less one."""
    device, controller = settings_of(given)
    clock = device.native.timing_ps()["clock"]
    for stream, by_window in given["clocks"].items():
        found = {}
        for window, peers in by_window.items():
            outcome = outcome_of(folder / stream, device, controller, int(window))
            found[f"{window:>3}"] = outcome["end_ps"] / clock / peers - 1
        yield stream, found


def energies(folder: Path, given: dict[str, Any]) -> Rows:
    """By stream: part, and our activates and energies over the peer's, less one."""
    device, controller = settings_of(given)
    for stream, peers in given["energy_16"].items():
        far = outcome_of(folder / stream, device, controller, 16)["far"]
        ours = {"activates": far["activates"]} | {f"{k}_J": j for k, j in far["energy_J"].items()}
        ours["total"] = sum(far["energy_J"].values())
        total = {"total": sum(peers.values()) - peers["activates"]}
        yield stream, {key: ours[key] / of - 1 for key, of in (peers | total).items() if of}


if __name__ == "__main__":
    if sys.argv[1] == "streams":
        write_streams(Path(sys.argv[2]))
    else:
        compared = energies if sys.argv[1] == "energy" else clocks
        for stream, found in compared(Path(sys.argv[2]), json.loads(Path(sys.argv[3]).read_text())):
            print(f"{stream:8}", *(f"{what}: {off:+6.1%}" for what, off in found.items()))
