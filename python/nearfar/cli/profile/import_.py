"""``nearfar profile import``: a profile from outputs of other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nearfar.cli import flags
from nearfar.records.choices import OtherTool

Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE…", help="Outputs of Mess, Intel MLC or STREAM.", show_default=False
    ),
]
From = Annotated[
    OtherTool | None, typer.Option("--from", help="The tool (default: found from the content).")
]
Name = Annotated[
    str | None,
    flags.text("--name", "NAME", "Name of the profile (default: that of the first file)."),
]
Nodes = Annotated[
    str | None,
    flags.text(
        "--nodes", "CPU:MEMORY", "NUMA nodes of CPUs and memory, if an output of mlc has several."
    ),
]
Out = Annotated[
    Path | None, flags.text("--out", "FILE", "File of the profile (default: NAME.toml).")
]


def import_(
    files: Files,
    tool: From = None,
    name: Name = None,
    nodes: Nodes = None,
    out: Out = None,
    json: flags.Json = None,
    quiet: flags.Quiet = False,
) -> None:
    """Make a device profile from what other tools measured: latency, bandwidth, latency under load.

    Read are memory_curves.csv of the Mess benchmark, the output of Intel's Memory Latency Checker
    (mlc), and that of STREAM. Of several files, the first one that has a figure counts. Curves that
    the load did not saturate are marked. The profile is a file that other verbs take by its path:
    --far ./mine.toml.

    Examples:

        nearfar profile import memory_curves.csv --name grace

        nearfar profile import mlc.txt --nodes 0:1 --name remote

        nearfar advise --far remote.toml -- ./program
    """
    from nearfar import api
    from nearfar.report import console
    from nearfar.report.terminal.sheet import sheet

    named = name or files[0].stem
    profile = api.import_profile(files, named, tool, nodes)
    file = api.write_profile(profile, out or Path(f"{named}.toml"))
    console.show(sheet(profile), profile.model_dump_json(indent=1, exclude_none=True), json)
    if not quiet:
        console.note(f"profile: {file}")
