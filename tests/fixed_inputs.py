"""Fixed values for what a run of the tool would measure, so that its result depends on no machine.

Each function of the first part is given to ``run_nearfar(..., prepare=...)`` and replaces one
measurement in the process of the run. Code under test still runs; only what it read from clocks is
replaced.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from nearfar._native import CompeteBench
from nearfar.stats import Estimate

if TYPE_CHECKING:
    from nearfar._native import CompeteRun

ITERATION_NS = 1_000_000
GIGA = 1e9


def _replace(owner: object, name: str, value: object) -> None:
    assert hasattr(owner, name)
    setattr(owner, name, value)


def program_takes(seconds: float) -> Callable[[], None]:
    """``advise``: every time of the native run is ``seconds``."""
    return partial(_program_takes, seconds)


def _program_takes(seconds: float) -> None:
    from nearfar.place import native_run
    from nearfar.place.native_run import NativeRun
    from nearfar.workflows import emulated_run

    measure = native_run.run_natively
    times = {f.name: seconds for f in dataclasses.fields(NativeRun) if f.name.endswith("_s")}

    def run_natively(
        program: Sequence[str],
        limit_s: float,
        environment: Mapping[str, str] | None = None,
        stdin: str = os.devnull,
    ) -> NativeRun:
        measured = measure(program, limit_s, environment, stdin)
        return dataclasses.replace(measured, **times)  # type: ignore[arg-type]

    _replace(emulated_run, "run_natively", run_natively)


def neighbors_use_one_cpu() -> None:
    """Every series of measurements finds that other processes used one CPU all the time."""
    from nearfar.noise import Watch
    from nearfar.records.noise import NoiseRecord

    def verdict(watch: Watch) -> NoiseRecord:
        found = watch._reasons(1.0, 1.0, 0.0, [])
        reasons = [f"{watch.name} – {reason}" for _, reason in found]
        return NoiseRecord(
            noisy=bool(reasons),
            reasons=reasons,
            foreign_cpus=1.0,
            steal=0.0,
            least_cpu_share=1.0,
            worst_spread=0.0,
            series=1,
        )

    _replace(Watch, "verdict", verdict)


def threads_overlap() -> None:
    """Copies of a competition overlap, whatever the scheduler does with their threads."""
    from nearfar.measure import compete, compete_alone, pipeline_alone, session

    for module in (compete, compete_alone, pipeline_alone):
        _replace(module, "CompeteBench", FixedClockBench)
    _replace(session, "_run_apart", _run_here)


def _run_here(epoch: Callable[[int], object], seed: int) -> object:
    """In this process, which has the fixed clock, instead of a fresh one."""
    return epoch(seed)


def far_copies_take_ten_times_as_long() -> None:
    """``--far-rows auto`` is predicted from 10 GB/s near and 1 GB/s far, 2 ns an element."""
    from nearfar.measure import balance

    measure = balance.measure
    fixed = balance.Balance(
        *(
            Estimate(value, 0.98 * value, 1.02 * value, 1, 0.02, "median")
            for value in (9 * GIGA, 1 * GIGA, 10 * GIGA, 2e-9)
        )
    )

    def measured(*arguments: object) -> balance.Balance:
        measure(*arguments)  # type: ignore[arg-type]
        return fixed

    _replace(balance, "measure", measured)


class FixedClockBench(CompeteBench):
    """All copies are made; then each is said to have taken a millisecond, from the same start."""

    def run(self, iterations: int) -> CompeteRun:
        """The run with fixed clocks, and rates that follow from them."""
        run = super().run(iterations)
        rate = self.iteration_bytes() / ITERATION_NS * 1e9
        threads = run["threads"]
        steps = [ITERATION_NS * (i + 1) for i in range(iterations)]
        none = [0] * iterations
        far = sum(thread["far"] for thread in threads)
        for thread in threads:
            thread.update(
                {
                    "start_ns": 0,
                    "wall_ns": steps,
                    "cpu_ns": steps,
                    "steal_ns": none,
                    "involuntary_switches": none,
                    "minor_faults": none,
                    "major_faults": none,
                }
            )
        run.update(
            {
                "from_ns": 0,
                "to_ns": steps[-1] + ITERATION_NS // 2,
                "near_bytes_per_s": (len(threads) - far) * rate,
                "far_bytes_per_s": far * rate,
            }
        )
        return run
