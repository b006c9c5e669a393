"""Crash exploration: of nearfar's structures, of programs, and of a kept image again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nearfar.errors import BadInputError
from nearfar.report.terminal.crash import count_text
from nearfar.verify import explorer, structures
from nearfar.verify.images import description_of, folder_for, keep
from nearfar.verify.recorder import (
    Turn,
    explaining_end,
    failure,
    record,
    scratch_folder,
    unrecorded,
)
from nearfar.verify.reopening import (
    command_arguments,
    command_on_image,
    input_file,
    input_is_lost,
    method_arguments,
    recorded_pool,
)
from nearfar.workflows.crash_result import Judged
from nearfar.workflows.thread_interleavings import InterleavedRun, explore_interleavings

if TYPE_CHECKING:
    from nearfar.measure.progress import ProgressSource
    from nearfar.records.choices import CrashStructure, Platform, Recovery, StoreRecorder
    from nearfar.verify.findings import Exploration

#: nearfar replays the logs of each image. As a check, libpmemobj opens every Nth image, too.
CONFIRM_EVERY = 100
_FUNCTION = re.compile(r"(.+\.so[.0-9]*):([A-Za-z_]\w*)")


@dataclass(frozen=True)
class Limits:
    """What survives a power cut, how many images to explore, and where failing ones are kept."""

    platform: Platform = "adr"
    budget: int = 0
    images: Path | None = None


@dataclass(frozen=True)
class StructureWork:
    """A seeded mix of operations on one of nearfar's structures."""

    structure: CrashStructure
    operations: int = 200
    seed: int = 1
    recovery: Recovery | None = None


def check_structure(
    work: StructureWork, limits: Limits, progress: ProgressSource
) -> Judged[Exploration]:
    """Explore every image that a power cut can leave of a structure."""
    if work.recovery is not None and work.structure not in structures.ON_LIBPMEMOBJ:
        raise BadInputError(
            f"{work.structure} does not use libpmemobj", f"leave out --recovery {work.recovery}"
        )
    asked: dict[str, object] = {
        "structure": work.structure,
        "n": work.operations,
        "seed": work.seed,
        "platform": limits.platform,
    }
    with _images(limits) as folder:
        arguments = {
            **asked,
            "budget": limits.budget,
            "images": folder,
            "confirm_every": 1 if work.recovery == "library" else CONFIRM_EVERY,
        }
        result = _explore("check", arguments, progress)
        keep(result, folder, {"verb": "check", **asked})
    return Judged(result, {"verb": "crash check", **asked})


@dataclass(frozen=True)
class ProgramWork:
    """A program, how it is recorded, and how its images are checked.

    ``checker``: the command that checks an image, within ``limit_s``; without one, the program is
    started again on each image, and the pool inspected. ``hosts``: how many hosts its threads run
    on. ``interleave``: how often the program is run, each time with another interleaving.
    ``pool``: the file of the pool; by default the first file that the program maps.
    """

    program: list[str]
    checker: str | None = None
    recorder: StoreRecorder = "preload"
    limit_s: float = 10.0
    hosts: int = 1
    interleave: int = 0
    pool: str | None = None


def run_program(work: ProgramWork, limits: Limits, progress: ProgressSource) -> Judged[Exploration]:
    """Record a program, and explore what a power cut can leave of its pool."""
    _check_hosts(work, limits.platform)
    asked: dict[str, object] = {
        "checker": _command(work.checker) if work.checker is not None else None,
        "platform": limits.platform,
        "limit_ms": int(work.limit_s * 1000),
    }
    with _images(limits) as folder:

        def run(recording: InterleavedRun) -> Exploration:
            return _run_once(work, asked, recording, progress)

        if work.interleave:
            result = explore_interleavings(
                run, work.program, work.interleave, limits.budget, folder
            )
        else:
            result = run(InterleavedRun(limits.budget, folder))
    request: dict[str, object] = {
        "program": work.program,
        "recorder": work.recorder,
        "hosts": work.hosts,
    }
    if work.interleave:
        request["interleave"] = work.interleave
    if work.pool:
        request["pool"] = work.pool
    return Judged(result, {"verb": "crash run", **asked, **request})


def _run_once(
    work: ProgramWork,
    asked: Mapping[str, object],
    recording: InterleavedRun,
    progress: ProgressSource,
) -> Exploration:
    """Record a program once, and explore its log."""
    with ExitStack() as open_folders:
        scratch = open_folders.enter_context(scratch_folder())
        log = scratch / "log"
        code = record(work.program, log, work.recorder, turn=recording.turn, pool=work.pool)
        how, directory = _how_to_check(asked["checker"], work.program, scratch)
        image = open_folders.enter_context(scratch_folder(directory)) / "image"
        arguments = {
            **_files(scratch),
            "image": image,
            **_check_arguments(how, image),
            "images": recording.folder,
            "budget": recording.budget,
            "limit_ms": asked["limit_ms"],
            "platform": asked["platform"],
            "hosts": work.hosts,
            "input_is_lost": int(input_is_lost()),
            **_turn_arguments(recording.turn),
        }
        with explaining_end(work.program, log, work.recorder, code):
            result = _explore("run", arguments, progress)
        if recording.turn and not recording.turn.flush:
            recording.pool = recorded_pool(scratch / "log")
            recording.turns = explorer.turns(scratch / "log")
        if how["checker"] is None and how["start"] is None:
            result.warnings.append(
                f"no argument of {work.program[0]} names its pool: it is not started on images"
            )
        failed = failure(work.program, scratch / "log", work.recorder, code)
        missing = unrecorded(work.program, scratch / "log")
        result.program_failed = bool(failed)
        result.recording_cut_short |= bool(missing)
        result.warnings += failed + missing
        origin = {"verb": "run", **asked, **how, "reopening": result.reopening}
        keep(result, recording.folder, origin)
    return result


def _turn_arguments(turn: Turn | None) -> dict[str, object]:
    if turn is None:
        return {}
    return {"interleaved": 1, "held": turn.thread if turn.flush else 0}


def _check_hosts(work: ProgramWork, platform: Platform) -> None:
    if work.hosts == 1:
        return
    if work.interleave:
        raise BadInputError(
            f"the threads of --hosts {work.hosts} take turns themselves", "leave out --interleave"
        )
    if work.recorder != "instrumented":
        raise BadInputError(
            f"--hosts {work.hosts} requires the reads of the program, which this recorder misses",
            "compile it (nearfar crash flags compile), and add --recorder instrumented",
        )
    if platform != "adr":
        raise BadInputError(
            f"--hosts {work.hosts} already explores crashes in which caches survive",
            f"leave out --platform {platform}",
        )


def replay(image: Path, progress: ProgressSource) -> Judged[Exploration]:
    """Run recovery and its check again on a kept failing image, in the directory where the image
    was found."""
    description = description_of(image)
    moment = {key: int(description[key]) for key in ("acknowledged", "in_flight", "finished")}
    if description["verb"] == "check":
        asked = {key: description[key] for key in ("structure", "n", "seed", "platform")}
        result = _explore("replay", {**asked, **moment, "image": image}, progress)
    else:
        kept = image.absolute()
        with _in_directory_of(description), scratch_folder(description.get("near")) as scratch:
            arguments = {
                "kept": kept,
                "image": scratch / "image",
                "output": scratch / "output",
                "limit_ms": description["limit_ms"],
                "caches_lost": description.get("caches_lost", "all"),
                **moment,
                **{f"operation{i}": n for i, n in enumerate(description.get("operations", []))},
                **_check_arguments(description, scratch / "image"),
            }
            if description.get("reopening"):
                arguments |= method_arguments(description["reopening"])
            result = _explore("run", arguments, progress)
    result.states = 1
    result.findings = [finding for finding in result.findings if finding.failure != "none"]
    result.violations = len(result.findings)
    return Judged(result, {"verb": "crash replay", "image": str(image)})


@contextmanager
def _in_directory_of(description: Mapping[str, Any]) -> Iterator[None]:
    """Change into the directory where the image was found.

    Raises BadInputError if it, or the program that checks the image, does not exist.
    """
    import shutil

    directory = description.get("directory", ".")
    program = (description.get("checker") or description.get("start") or [None])[0]
    if not Path(directory).is_dir():
        raise BadInputError(f"the directory of this image is gone: {directory}", "make it again")
    with chdir(directory):
        if program and not _FUNCTION.fullmatch(program) and not shutil.which(program):
            raise BadInputError(
                f"{program} in {directory} is not an executable program", "build it again"
            )
        yield


@contextmanager
def _images(limits: Limits) -> Iterator[Path]:
    """The directory of failing images, which is removed if none was kept."""
    folder = folder_for(limits.images)
    try:
        yield folder
    finally:
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


def _explore(
    command: str, arguments: Mapping[str, object], progress: ProgressSource
) -> Exploration:
    with progress() as shown:

        def report(states: int, left: float, bad: int, done: float) -> None:
            rest = count_text(left)
            shown.step(f"{states:,} images explored, {rest} left, {bad:,} violations", done)

        if command == "check":
            result = structures.check(arguments, report)
        else:
            result = explorer.explore(command, arguments, report)
    explorer.with_lines(result)
    return result


def _command(checker: str) -> list[str]:
    """Return the words of a checker. Raises BadInputError if it names no program or function."""
    import shlex
    import shutil

    try:
        command = shlex.split(checker)
    except ValueError as error:
        raise BadInputError(
            f"--checker {checker!r} cannot be split into words: {error}", "close its quotes"
        ) from None
    if not command:
        raise BadInputError("--checker is empty", "name a program that checks an image")
    if not (len(command) == 1 and _FUNCTION.fullmatch(command[0])) and not shutil.which(command[0]):
        raise BadInputError(
            f"--checker: '{command[0]}' is not an executable program",
            "name a program that checks an image, or LIBRARY.so:FUNCTION",
        )
    return command


def _files(scratch: Path) -> dict[str, object]:
    """Return the working files of the explorer, and the library that records a checker's stores
    while it recovers an image."""
    from nearfar.process.helpers import preloadable
    from nearfar.verify.recorder import RECORDER

    names = ("log", "image", "output", "recovery")
    return {**{name: scratch / name for name in names}, "recorder": preloadable(RECORDER)}


def _how_to_check(
    checker: object, program: list[str], scratch: Path
) -> tuple[dict[str, Any], Path | None]:
    """Return how to check an image, and the directory for images.

    With a checker, its words; without one, the words that start the program, and its input. The
    directory is None unless the pool is in memory: then images must be in memory, too.
    """
    if isinstance(checker, list):
        return {"checker": checker}, None
    pool = recorded_pool(scratch / "log")
    words = command_on_image(program, pool) if pool is not None else None
    in_memory = pool is not None and structures.MEMORY in pool.parents
    directory = structures.MEMORY if in_memory else None
    how = {
        "checker": None,
        "start": words,
        "input": input_file(),
        "near": directory and str(directory),  # next to the pool, not near memory
    }
    return how, directory


def _check_arguments(how: Mapping[str, Any], image: Path) -> dict[str, object]:
    """Return how images are checked, in the form that the explorer reads."""
    if how["checker"] is not None:
        return {**_checker_arguments(how["checker"])}
    return {**command_arguments(how["start"] or [], image), "input": how["input"]}


def _checker_arguments(command: list[str]) -> dict[str, str]:
    """Return a checker in the form that the explorer reads: library and function, or one key per
    argument."""
    if len(command) == 1 and (match := _FUNCTION.fullmatch(command[0])):
        return {"checker_library": str(Path(match[1]).resolve()), "checker_function": match[2]}
    return {f"checker{i}": argument for i, argument in enumerate(command)}
