"""Recording around every measurement: the record, the noise verdict, the exit status."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from nearfar import __version__
from nearfar.errors import MachineError, NoisyError

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import BaseModel
    from rich.console import RenderableType

    from nearfar.machine.model import Machine
    from nearfar.measure.session import Session
    from nearfar.records.run import Run, Skipped
    from nearfar.store import RunDirectory


#: Maximum reasons of a disturbed run in one line; the record and the report have all.
MOST_REASONS = 3


@dataclass(frozen=True)
class Kept:
    """Options of a run's record and exit status."""

    seed: int
    out: Path | None
    strict: bool
    quiet: bool


@dataclass
class Recording:
    """A run in progress: measure with ``session``, put results into ``directory.run``."""

    machine: Machine
    session: Session
    directory: RunDirectory
    strict: bool
    quiet: bool

    def document(self, result: BaseModel) -> str:
        """One section as the JSON document of its verb: its keys at the top, next to the run's."""
        import json

        run = self.directory.run
        return json.dumps(
            {
                **result.model_dump(mode="json", by_alias=True, exclude_none=True),
                "verb": run.verb,
                "schema_version": run.schema_version,
                "nearfar_version": run.nearfar_version,
                "machine": run.machine,
                "noise": run.noise.model_dump() if run.noise else None,
                "record": str(self.directory.path),
            },
            indent=1,
        )

    def keep(self, section: str, result: BaseModel, skipped: Sequence[Skipped]) -> None:
        """Save a finished section and its skipped points."""
        run = self.directory.run
        setattr(run.sections, section, result)
        run.skipped += skipped
        self.directory.save()

    def show(self, text: RenderableType, document: str, json_target: str | None) -> None:
        """Print the closed record's result, as text and as JSON if requested, and its verdict.

        Raises NoisyError under --strict if the run was disturbed: the figures are still shown.
        """
        from nearfar.report.console import note, print_result, write_json

        if json_target is not None:
            write_json(json_target, document)
        if json_target != "-":
            print_result(text)
        if not self.quiet:
            note(f"record: {self.directory.path}")
        noise = self.directory.run.noise
        if noise is None or not noise.noisy:
            return
        more = len(noise.reasons) - MOST_REASONS
        reasons = [*noise.reasons[:MOST_REASONS], *([f"and {more} more"] if more > 0 else [])]
        complaint = f"too noisy: {'; '.join(reasons)}"
        if self.strict:
            raise NoisyError(complaint, "stop what else runs (see `nearfar doctor`) and try again")
        note(complaint)


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
def recorded(verb: str, arguments: dict[str, Any], kept: Kept) -> Iterator[Recording]:
    """Open a record, and close it however the measurement ends."""
    from nearfar import store
    from nearfar.machine.topology import this_machine
    from nearfar.measure.session import Session
    from nearfar.noise import NoiseMeter
    from nearfar.records.noise import NoiseRecord
    from nearfar.report.console import progress

    machine = this_machine()
    run = begun(verb, arguments, machine, kept.seed)
    directory = store.RunDirectory.create(run, kept.out)
    with progress(kept.quiet) as shown:
        session = Session(machine.id, kept.seed, shown, NoiseMeter(), directory.add_samples)
        recording = Recording(machine, session, directory, kept.strict, kept.quiet)

        def close(status: str) -> None:
            run.status = status  # type: ignore[assignment]
            run.ended = store.now()
            run.noise = NoiseRecord(**asdict(session.noise.verdict()))
            directory.save()

        try:
            yield recording
        except KeyboardInterrupt:
            close("interrupted")
            if not directory.discard_if_empty():
                shown.note(f"what was finished is in {directory.path}")
            raise
        except BaseException:
            with contextlib.suppress(MachineError):  # report the first failure only
                close("failed")
            directory.discard_if_empty()
            raise
        close("finished")
