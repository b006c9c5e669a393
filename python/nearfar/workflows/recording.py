"""Records of measurements: opened before, saved meanwhile, closed with the verdict on noise."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import BaseModel

from nearfar import __version__
from nearfar.errors import MachineError

if TYPE_CHECKING:
    from pathlib import Path

    from polars import DataFrame

    from nearfar.machine.model import Machine
    from nearfar.measure.progress import ProgressSource
    from nearfar.measure.session import Session
    from nearfar.records.run import Run, Sections, Skipped
    from nearfar.store import RunDirectory
    from nearfar.workflows.options import Options

ResultT = TypeVar("ResultT", bound=BaseModel)


@dataclass(frozen=True)
class Measured(Generic[ResultT]):
    """The result of a measurement, and the record that contains it.

    ``result`` is the model of the result. ``run`` is the whole record, with the machine, the
    verdict on noise and the skipped measurements. ``folder`` is the directory of the record.
    """

    result: ResultT
    run: Run
    folder: Path

    def document(self) -> str:
        """The JSON document of the verb: one object with the keys of the result and of the run."""
        import json

        run = self.run
        if self.result is run:
            return run.model_dump_json(indent=1, exclude_none=True)
        return json.dumps(
            {
                **self.result.model_dump(mode="json", by_alias=True, exclude_none=True),
                "verb": run.verb,
                "schema_version": run.schema_version,
                "nearfar_version": run.nearfar_version,
                "machine": run.machine,
                "noise": run.noise.model_dump() if run.noise else None,
                "record": str(self.folder),
            },
            indent=1,
        )

    def to_polars(self) -> DataFrame:
        """The figures of the whole record as a polars table, one row each."""
        return self.run.to_polars()


@dataclass
class Recording:
    """A run in progress: measurements use ``session``, results are put into ``directory.run``."""

    machine: Machine
    session: Session
    directory: RunDirectory

    def keep(self, section: str, result: BaseModel, skipped: Sequence[Skipped] = ()) -> None:
        """Save a finished section and its skipped points."""
        run = self.directory.run
        setattr(run.sections, section, result)
        run.skipped += skipped
        self.directory.save()

    def replace(self, sections: Sections, skipped: list[Skipped]) -> None:
        """Replace and save all sections, and the list of all skipped measurements."""
        run = self.directory.run
        run.sections, run.skipped = sections, skipped
        self.directory.save()

    def measured(self, result: ResultT) -> Measured[ResultT]:
        """A result of this run, together with its record."""
        return Measured(result, self.directory.run, self.directory.path)


def begun(verb: str, arguments: dict[str, Any], machine: Machine, seed: int) -> Run:
    """The record of a run that starts now, on this machine."""
    from nearfar import store
    from nearfar.machine.doctor import examine
    from nearfar.records.run import Run

    return Run(
        nearfar_version=__version__,
        verb=verb,
        arguments=arguments,
        started=store.now(),
        seed=seed,
        machine=machine.model_dump(mode="json", exclude_none=True),
        findings=examine(machine),
    )


@contextmanager
def open_session(progress: ProgressSource, seed: int = 1) -> Iterator[Session]:
    """A session of a verb that measures and keeps no record."""
    from nearfar.machine.topology import this_machine
    from nearfar.measure.session import Session

    with progress() as shown:
        yield Session(this_machine().id, seed, shown)


@contextmanager
def recorded(
    verb: str, arguments: dict[str, Any], options: Options, section: str = ""
) -> Iterator[Recording]:
    """Open a record; close it with the status finished, interrupted or failed.

    ``section``: the section that the run measures. A run of several sections leaves it empty, and
    assigns ``session.section`` before each. A record without results is deleted after an error or
    an interrupt.
    """
    from nearfar import store
    from nearfar.machine.topology import this_machine
    from nearfar.measure.session import Session
    from nearfar.noise import NoiseMeter

    machine = this_machine()
    directory = store.RunDirectory.create(
        begun(verb, arguments, machine, options.seed), options.out
    )
    with options.progress() as shown:
        session = Session(
            machine.id,
            options.seed,
            shown,
            NoiseMeter(),
            directory.add_samples,
            section=section,
        )
        try:
            yield Recording(machine, session, directory)
        except KeyboardInterrupt:
            _close(directory, session, "interrupted")
            if not directory.discard_if_empty():
                shown.note(f"what was finished is in {directory.path}")
            raise
        except BaseException:
            with contextlib.suppress(MachineError):  # report the first failure only
                _close(directory, session, "failed")
            directory.discard_if_empty()
            raise
        _close(directory, session, "finished")


def _close(directory: RunDirectory, session: Session, status: str) -> None:
    from nearfar import store

    run = directory.run
    run.status = status  # type: ignore[assignment]
    run.ended = store.now()
    run.noise = session.noise.verdict()
    directory.save()
