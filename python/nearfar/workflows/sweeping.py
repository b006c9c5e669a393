"""Sweeps: find or run cells, write the record, the table, the report."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from nearfar import store
from nearfar.errors import BadInputError, ExitCode
from nearfar.measure.progress import ProgressSource, silent
from nearfar.records.noise import NoiseRecord
from nearfar.records.run import Run
from nearfar.records.sweep import SweepCell, SweepResult
from nearfar.report.html import page
from nearfar.sweep import suite as suites
from nearfar.sweep import table
from nearfar.sweep.cluster import run_on_cluster
from nearfar.sweep.here import run_here
from nearfar.sweep.keeping import Cells, opened
from nearfar.sweep.work_order import WorkOrder, digest_of, identify
from nearfar.workflows.recording import begun

if TYPE_CHECKING:
    from polars import DataFrame

    from nearfar.measure.progress import Progress
    from nearfar.sweep.running import Outcome


class Verb(Protocol):
    """Properties of a cell's verb that a sweep depends on."""

    def measures(self, values: Mapping[str, suites.Value]) -> bool:
        """Whether it times something, so that nothing else may run concurrently."""

    def records(self, values: Mapping[str, suites.Value]) -> bool:
        """Whether it writes a record to ``--out``."""


#: The verb of a cell and its arguments. Raises BadInputError for arguments the verb rejects.
CellArguments = Callable[[suites.Cell], tuple[Verb, list[str]]]


@dataclass(frozen=True)
class SweepRequest:
    """The flags of the verb."""

    suite: suites.Suite
    full: bool
    jobs: int | None
    scheduler: str | None
    out: Path | None
    arguments_of: CellArguments
    progress: ProgressSource = silent

    @property
    def folder(self) -> Path:
        """The sweep's folder: derived from the suite, so that a rerun finds it."""
        form = "-full" if self.full else ""
        return self.out or store.DEFAULT_ROOT / f"sweep-{self.suite.name}{form}"


def work_orders(wanted: SweepRequest) -> list[WorkOrder]:
    """A work order for each cell of the suite, without duplicates.

    Raises BadInputError naming the suite, the run and the key.
    """
    found: dict[str, WorkOrder] = {}
    digest = cache(digest_of)  # several cells may name the same trace, which is then read once
    try:
        for cell in suites.cells(wanted.suite, full=wanted.full):
            verb, arguments = wanted.arguments_of(cell)
            name = identify(cell.verb, arguments, digest)
            order = WorkOrder(
                name,
                cell.verb,
                tuple(arguments),
                cell.varied,
                verb.measures(cell.values),
                verb.records(cell.values),
            )
            found.setdefault(name, order)
    except BadInputError as error:
        raise BadInputError(f"suite {wanted.suite.name}, {error.what}", error.next_step) from None
    return list(found.values())


@dataclass(frozen=True)
class Swept:
    """A sweep: its record, its folder, and how many of its cells were already there."""

    run: Run
    folder: Path
    found_again: int

    @property
    def result(self) -> SweepResult:
        """The cells."""
        assert self.run.sections.sweep is not None
        return self.run.sections.sweep

    @property
    def noisy(self) -> int:
        """Number of disturbed cells."""
        return sum(cell.noise is not None and cell.noise.noisy for cell in self.result.cells)

    def exit_code(self) -> int:
        """The exit code of the sweep: of its failed cells, else the largest of a cell."""
        cells = self.result.cells
        failed = [cell.exit_code for cell in cells if cell.status == "failed"]
        if failed:
            wrong = all(code == ExitCode.BAD_INPUT for code in failed)
            return ExitCode.BAD_INPUT if wrong else ExitCode.MACHINE
        return max((cell.exit_code for cell in cells), default=ExitCode.OK)

    def csv(self) -> str:
        """The figures of all cells as CSV, one row each, as in results.csv."""
        return table.csv_of(self.result.cells)

    def to_polars(self) -> DataFrame:
        """The figures of all cells as a polars table, one row each."""
        return self.run.to_polars()


def sweep(wanted: SweepRequest) -> Swept:
    """Run the cells that are not kept yet. Raises errors of a cluster."""
    wished = work_orders(wanted)
    with opened(wanted.folder) as kept:
        record = _open_record(wanted, len(wished))
        done = {order.id: cell for order in wished if (cell := kept.find(order))}
        again = len(done)
        with wanted.progress() as shown:
            status = "interrupted"
            try:
                _sweep(wanted, kept, [o for o in wished if o.id not in done], done, shown)
                status = "finished"
            finally:
                cells = [done[order.id] for order in wished if order.id in done]
                timed = any(order.measures for order in wished if order.id in done)
                _close_record(wanted, record, cells, status, timed=timed)
                if status != "finished":
                    shown.note(
                        f"{len(cells)} of {len(wished)} cells are kept in {wanted.folder}; "
                        "the same command goes on"
                    )
    return Swept(record.run, wanted.folder, again)


def _sweep(
    wanted: SweepRequest,
    kept: Cells,
    open_orders: list[WorkOrder],
    done: dict[str, SweepCell],
    shown: Progress,
) -> None:
    """Run the unfinished cells, and save each when it ends."""
    total = len(open_orders)
    if not total:
        return
    shown.step(f"cell 1 of {total}", 0.0)
    with contextlib.closing(_outcomes(wanted, kept, open_orders, shown)) as outcomes:
        for number, outcome in enumerate(outcomes, 1):
            cell = kept.keep(outcome)
            done[cell.id] = cell
            if cell.status == "failed":
                shown.note(f"failed: {outcome.order.command}\n  {cell.message}")
            shown.step(f"{number} of {total}: {outcome.order.command}", number / total)


def _outcomes(
    wanted: SweepRequest, kept: Cells, open_orders: list[WorkOrder], shown: Progress
) -> Generator[Outcome, None, None]:
    if wanted.scheduler:
        return run_on_cluster(open_orders, wanted.scheduler)
    jobs = wanted.jobs or len(os.sched_getaffinity(0))
    return run_here(
        open_orders,
        jobs,
        kept.folder,
        lambda: shown.note("waiting: another sweep uses this machine"),
    )


def _open_record(wanted: SweepRequest, planned: int) -> store.RunDirectory:
    from nearfar.machine.topology import this_machine

    suite = wanted.suite
    arguments = {"suite": suite.name, "full": wanted.full, "scheduler": wanted.scheduler}
    run = begun("sweep", arguments, this_machine(), 1)
    run.sections.sweep = SweepResult(
        suite=suite.name, title=suite.title, source=suite.source, planned=planned, cells=[]
    )
    directory = store.RunDirectory(wanted.folder, run)
    if not (wanted.folder / "run.json").exists():
        directory.save()
    return directory


def _close_record(
    wanted: SweepRequest,
    record: store.RunDirectory,
    cells: list[SweepCell],
    status: str,
    *,
    timed: bool,
) -> None:
    run = record.run
    assert run.sections.sweep is not None
    run.sections.sweep.cells = cells
    run.status = status  # type: ignore[assignment]
    run.ended = store.now()
    run.noise = _noise(cells, timed=timed)
    record.save()
    table.write_tables(wanted.folder, cells)
    page.write_report(wanted.folder, run)


def _noise(cells: list[SweepCell], *, timed: bool) -> NoiseRecord:
    """The worst of every kind of evidence over all timed cells, if any."""
    judged = [(cell, cell.noise) for cell in cells if cell.noise]
    noises = [noise for _, noise in judged]
    return NoiseRecord(
        noisy=any(noise.noisy for noise in noises),
        reasons=[f"{cell.id}: {'; '.join(n.reasons[:1])}" for cell, n in judged if n.noisy],
        foreign_cpus=max((noise.foreign_cpus for noise in noises), default=0.0),
        steal=max((noise.steal for noise in noises), default=0.0),
        least_cpu_share=min((noise.least_cpu_share for noise in noises), default=1.0),
        worst_spread=max((noise.worst_spread for noise in noises), default=0.0),
        series=None if timed else 0,  # 0: the sweep timed nothing, so there is no verdict
    )
