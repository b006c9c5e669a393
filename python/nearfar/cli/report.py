"""``nearfar report``: the HTML page of a record."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from nearfar.records.run import Run

Records = Annotated[
    list[Path],
    typer.Argument(
        metavar="RECORD", help="A run directory, such as nearfar-runs/…", show_default=False
    ),
]


def report(
    records: Records,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="The page (default: report.html in the record).",
            show_default=False,
        ),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(
            "--against",
            metavar="RECORD",
            help="Run to compare with (default: the previous one).",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Write the HTML report of a record: one file with pictures that requires no network.

    The report compares the record with the previous run of the same verb on the same machine, or
    with the run that --against names, such as last month's study or a simulation of another memory.

    Examples:

        nearfar report nearfar-runs/20250102T030405Z-study --out today.html

        nearfar report nearfar-runs/20250202T030405Z-study --against
        nearfar-runs/20250102T030405Z-study
    """
    from nearfar.report.html.page import FILE_NAME, Against, write_page
    from nearfar.store import previous_runs, read_run

    record = _one(records)
    run = read_run(record)
    directory = record if record.is_dir() else record.parent
    machine = run.machine.get("id")
    page = out or directory / FILE_NAME
    if against is not None:
        print(write_page(page, run, against=Against(directory, against, _base(against, run))))
        return
    previous = previous_runs(run.verb, machine, directory.absolute().parent) if machine else []
    print(write_page(page, run, previous))


def _one(records: list[Path]) -> Path:
    """Return the only record. Raises BadInputError for several."""
    from nearfar.errors import BadInputError

    if len(records) == 2:
        base, record = (each if "/" in str(each) else f"./{each}" for each in records)
        raise BadInputError(
            f"a report is about one record, and {base} and {record} are two",
            f"nearfar report {record} --against {base}, or nearfar compare {base} {record}",
        )
    if len(records) > 2:
        raise BadInputError(
            f"a report is about one record, and {len(records)} were given",
            "write one report for each; nearfar compare A… B compares several",
        )
    return records[0]


def _base(path: Path, run: Run) -> Run:
    """Return the record to compare with. Raises BadInputError if it has another subject."""
    from nearfar.errors import BadInputError
    from nearfar.report.html.page import same_subject
    from nearfar.store import read_run

    before = read_run(path)
    if before.verb != run.verb:
        raise BadInputError(
            f"{path} is a record of {before.verb}, not of {run.verb}", "name one of the same verb"
        )
    if not same_subject(before, run):
        raise BadInputError(
            f"{path} is a record of another program, suite or stream of requests",
            f"name a record of the same one, or print both: nearfar compare {path} RECORD",
        )
    return before
