"""The exact engine against the clocks that another simulator takes for the same streams.

.venv/bin/python benchmarks/simulator_peers.py streams DIR
    writes eight streams of 40,000 requests in 1 GiB, in DRAMsim3's format, all at cycle 0
.venv/bin/python benchmarks/simulator_peers.py compare DIR CLOCKS.json
    compares; CLOCKS.json has the peer's settings and results:
    {"peer": NAME, "device": NAME, "figures": {KEY: VALUE, ...} that differ from the device's,
     "mapping": FIELDS, "write_drain": [FROM, TO, IDLE], "row_hit_cap": N or null,
     "clocks": {"seq": {"16": CLOCKS, ...}, ...}}
    benchmarks/peers/ has those of Ramulator 2.1 and DRAMsim3

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


def clocks_of(file: Path, device: Device, controller: Controller, window: int) -> float:
    """Simulated clocks of a stream."""
    with tempfile.TemporaryDirectory() as scratch:
        trace = Path(scratch) / "trace"
        import_trace(file, "dramsim3", trace)
        source = _native.TraceSource(str(trace), 0.0, [])
        options = Options(controller=controller, window=window)
        outcome, _ = run(source, device, device, Placement("all-far"), options, "exact")
    return outcome["end_ps"] / device.native.timing_ps()["clock"]


def device_of(name: str, figures: dict[str, float]) -> Device:
    """The device with the peer's figures."""
    profile = load_profile(name)
    changed = {
        key: Figure(
            unit=unit_of(key), value=value, source=next(iter(profile.sources)), confidence="C"
        )
        for key, value in figures.items()
    }
    return Device.of(profile.model_copy(update={"figures": {**profile.figures, **changed}}))


def differences(folder: Path, peer: Path) -> Iterator[tuple[str, dict[str, float]]]:
    """By stream: window, and our clocks over the peer's, less one."""
    given = json.loads(peer.read_text())
    device = device_of(given["device"], given["figures"])
    controller = Controller(
        row_hit_cap=given["row_hit_cap"],
        write_drain=tuple(given["write_drain"]),
        mapping=given["mapping"],
    )
    for stream, by_window in given["clocks"].items():
        yield (
            stream,
            {
                window: clocks_of(folder / stream, device, controller, int(window)) / clocks - 1
                for window, clocks in by_window.items()
            },
        )


if __name__ == "__main__":
    if sys.argv[1] == "streams":
        write_streams(Path(sys.argv[2]))
    else:
        for stream, by_window in differences(Path(sys.argv[2]), Path(sys.argv[3])):
            row = (f"{window:>3}: {found:+6.1%}" for window, found in by_window.items())
            print(f"{stream:8}", *row)
