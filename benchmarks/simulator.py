"""Requests a second of both engines, energy and wear on; fast against exact on the four programs.

.venv/bin/python benchmarks/simulator.py            programs, then speeds
.venv/bin/python benchmarks/simulator.py settings   programs in more settings
.venv/bin/python benchmarks/simulator.py mixes      streams with writes in more settings
.venv/bin/python benchmarks/simulator.py speeds     speeds alone
.venv/bin/python benchmarks/simulator.py writes     exact engine, many writes
.venv/bin/python benchmarks/simulator.py threads    exact engine, channels in two threads
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path

from nearfar import _native
from nearfar.measure import programs
from nearfar.profiles import load_profile
from nearfar.records.choices import CoreModel, EngineName, PagePolicy, ProgramName, WritePolicy
from nearfar.simulation.controller import Controller
from nearfar.simulation.devices import Device
from nearfar.simulation.placements import Placement
from nearfar.simulation.run import Options, run

REPEATS = 5
FAR = Placement("all-far")
ENGINES: tuple[EngineName, ...] = ("fast", "exact")
WORK: tuple[tuple[ProgramName, int, int], ...] = (
    ("quick", 65536, 1),
    ("merge", 65536, 1),
    ("lbm", 16, 4),
    ("matmul", 160, 1),
)


def speeds() -> None:
    """Requests per second of CPU time; a region of 1 GiB, open rows, ten accesses in flight.

    Median and range of REPEATS runs. The fast engine takes no samples.
    """
    for name in ("ddr4-3200", "pcm-snu-ns"):
        device = Device.of(load_profile(name))
        for engine, count in zip(ENGINES, (4_000_000, 300_000), strict=True):
            for pattern in ("random", "sequential"):
                for writes in (0.0, 0.3):
                    rates = []
                    for _ in range(REPEATS):
                        source = _native.SyntheticSource(pattern, count, 1 << 30, writes, 0.0, 1)
                        began = time.process_time()
                        run(source, device, device, FAR, Options(), engine, accept_inexact=True)
                        rates.append(count / (time.process_time() - began) / 1e6)
                    print(
                        f"{name:11} {engine:5} {pattern:10} {writes:.0%} writes "
                        f"{statistics.median(rates):.1f} [{min(rates):.1f}, {max(rates):.1f}] M/s"
                    )


#: (pages, writes, core)
CORES: tuple[tuple[PagePolicy, WritePolicy, CoreModel], ...] = (
    ("closed", "blocking", "blocking"),
    ("open", "posted", "window"),
)


def differences() -> None:
    """Fast over exact, less one: time, energy."""
    for program, n, steps in WORK:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "trace"
            programs.record(program, n, steps, 1, file, [programs.CACHES["l1"]])
            for name in ("dram-snu", "pcm-snu-ns", "ddr4-3200"):
                for pages, writes, core in CORES:
                    options = Options(controller=Controller(pages), write_policy=writes, core=core)
                    time, energy, _ = one_off(name, file, options)
                    print(
                        f"{program:6} {n:6} {name:11} {core:8} writes {writes:8} "
                        f"time {time:+.1%} energy {energy:+.1%}"
                    )


#: (pages, writes, core, window)
SETTINGS: tuple[tuple[PagePolicy, WritePolicy, CoreModel, int], ...] = (
    ("open", "posted", "window", 10),
    ("open", "posted", "window", 24),
    ("open", "posted", "window", 32),
    ("closed", "posted", "window", 10),
    ("closed", "posted", "window", 32),
    ("closed", "blocking", "blocking", 1),
)
DEVICES = (
    "ddr3-1333",
    "ddr4-3200",
    "ddr5-3200",
    "cxl-ddr5",
    "dram-snu",
    "pcm-snu-ns",
    "pcm-snu-cycles",
    "pcm-lee",
)


def settings() -> None:
    """Fast over exact, less one, over all devices and programs: how many agree, the worst."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / program for program, _, _ in WORK]
        for file, (program, n, steps) in zip(files, WORK, strict=True):
            programs.record(program, n, steps, 1, file, [programs.CACHES["l1"]])
        for pages, writes, core, window in SETTINGS:
            options = Options(
                controller=Controller(pages), write_policy=writes, core=core, window=window
            )
            off = [
                (*one_off(name, file, options), name, file.name)
                for name in DEVICES
                for file in files
            ]
            in_time = sum(abs(time) <= 0.05 for time, *_ in off)
            refused = sum(refused for _, _, refused, *_ in off)
            wrong = sum(abs(time) > 0.05 and not refused for time, _, refused, *_ in off)
            both = sum(abs(time) <= 0.05 and abs(energy) <= 0.03 for time, energy, *_ in off)
            time, *_, slow, slowest = max(off, key=lambda row: abs(row[0]))
            _, energy, _, dear, dearest = max(off, key=lambda row: abs(row[1]))
            print(
                f"{pages:7} {writes:8} {core:8} {window:2} of {len(off)}: time within 5 % "
                f"{in_time}, energy within 3 % too {both}; refused {refused}, neither {wrong}; "
                f"worst time {time:+.1%} {slow} {slowest}, energy {energy:+.1%} {dear} {dearest}"
            )
            for time, _, is_refused, device, trace in off:
                if abs(time) > 0.05:
                    print(f"  {device} {trace} {time:+.1%}{': refused' * is_refused}")


#: (pattern, fraction of writes, time between requests in ns, window)
MIXES = tuple(product(("sequential", "random"), (0.0, 0.25, 0.5, 1.0), (0.0, 20.0), (10, 32)))
MIXED_DEVICES = (*DEVICES, "gddr6-12000", "hbm2-2000")
MAPPINGS = ("rorabacobgch", "rocorababgch", "rorabgcobach")


def mixes() -> None:
    """Streams of 40,000 requests: by writes, how many settings are accepted or refused wrongly."""
    off: dict[float, list[tuple[float, bool, str]]] = {}
    for name, mapping, mix in product(MIXED_DEVICES, MAPPINGS, MIXES):
        pattern, share, gap_ns, window = mix
        device = Device.of(load_profile(name))
        options = Options(controller=Controller(mapping=mapping), window=window)
        make = partial(
            _native.SyntheticSource, pattern, 40_000, 1 << 30, share, gap_ns, seed=len(name)
        )
        ends = [
            run(make(), device, device, FAR, options, engine, accept_inexact=True)[0]["end_ps"]
            for engine in ENGINES
        ]
        refused = is_refused(make(), device, options)
        off.setdefault(share, []).append(
            (ends[0] / ends[1] - 1, refused, f"{name} {mapping} {mix}")
        )
    for share, rows in off.items():
        accepted = [row for row in rows if not row[1]]
        outside = [row for row in rows if abs(row[0]) > 0.05]
        worst = max(accepted, key=lambda row: abs(row[0]))
        print(
            f"{share:4.0%} writes, {len(rows)} settings: {len(outside)} differ by more than 5 %, "
            f"of which {sum(not refused for _, refused, _ in outside)} are accepted; "
            f"{len(rows) - len(accepted)} refused; worst accepted {worst[0]:+.1%} {worst[2]}"
        )


def one_off(name: str, file: Path, options: Options) -> tuple[float, float, bool]:
    """Time and energy of the fast engine over those of the exact one, less one.

    And whether the fast engine refuses it.
    """
    device = Device.of(load_profile(name))
    found = []
    for engine in ENGINES:
        source = _native.TraceSource(str(file), 370.0, [])
        outcome, _ = run(source, device, device, FAR, options, engine, accept_inexact=True)
        found.append((outcome["end_ps"], sum(outcome["far"]["energy_J"].values())))
    (fast, fast_joules), (exact, exact_joules) = found
    energy = fast_joules / exact_joules - 1 if exact_joules else 0.0
    source = _native.TraceSource(str(file), 370.0, [])
    return fast / exact - 1, energy, is_refused(source, device, options)


def is_refused(source: _native.SimSource, device: Device, options: Options) -> bool:
    """Whether the fast engine refuses the settings, or its result."""
    try:
        run(source, device, device, FAR, options, "fast")
    except _native.NativeError:
        return True
    return False


def writes() -> None:
    """Median and range of REPEATS runs of the exact engine: programs, and random streams."""
    with tempfile.TemporaryDirectory() as folder:
        sources: dict[str, Callable[[], _native.SimSource]] = {}
        for program, n, steps in WORK:
            file = Path(folder) / program
            programs.record(program, n, steps, 1, file, [programs.CACHES["l1"]])
            sources[program] = partial(_native.TraceSource, str(file), 370.0, [])
        for share in (0.6, 1.0):
            sources[f"random, {share:.0%} writes"] = partial(
                _native.SyntheticSource, "random", 200_000, 1 << 30, share, 0.0, 1
            )
        for name in ("ddr4-3200", "ddr5-3200", "pcm-snu-ns"):
            device = Device.of(load_profile(name))
            for what, make in sources.items():
                rates = []
                for _ in range(REPEATS):
                    began = time.process_time()
                    outcome, _ = run(make(), device, device, FAR, Options(), "exact")
                    rates.append(outcome["requests"] / (time.process_time() - began) / 1e6)
                share = outcome["far"]["writes"] / outcome["requests"]
                print(
                    f"{name:10} {what:19} {share:4.0%} writes "
                    f"{statistics.median(rates):.2f} [{min(rates):.2f}, {max(rates):.2f}] M/s"
                )


def threads() -> None:
    """Wall time of one thread over that of two, REPEATS interleaved pairs; results are equal.

    Random requests come at a sixth of each device's peak bandwidth, in trace time.
    """
    for name, share in product(("ddr5-3200", "hbm2-2000", "hbm3-6400"), (0.0, 0.3)):
        profile = load_profile(name)
        device, channels = Device.of(profile), int(profile.scalar("channels"))
        gap_ns = 6 * device.native.timing_ps()["burst"] / channels / 1000
        ratios, rates = [], []
        for _ in range(REPEATS):
            took = []
            outcomes = []
            for count in (1, 2):
                source = _native.SyntheticSource("random", 1_000_000, 1 << 30, share, gap_ns, 1)
                options = Options(core="trace-time", threads=count)
                outcome, rate = run(source, device, device, FAR, options, "exact")
                outcomes.append(outcome)
                took.append(outcome["requests"] / rate)
                rates.append(rate / 1e6)
            assert outcomes[0] == outcomes[1]
            ratios.append(took[0] / took[1])
        print(
            f"{name:10} {channels:2} channels {share:.0%} writes, one over two threads "
            f"{statistics.median(ratios):.2f} [{min(ratios):.2f}, {max(ratios):.2f}]; "
            f"{statistics.median(rates[::2]):.2f} and {statistics.median(rates[1::2]):.2f} M/s"
        )


def programs_and_speeds() -> None:
    """Both engines on programs, then their speeds."""
    differences()
    speeds()


MODES = {
    "": programs_and_speeds,
    "mixes": mixes,
    "settings": settings,
    "speeds": speeds,
    "threads": threads,
    "writes": writes,
}

if __name__ == "__main__":
    MODES[" ".join(sys.argv[1:])]()
