"""``nearfar predict interleave``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nearfar.cli import flags
from nearfar.units import parse_seconds

Sites = Annotated[
    Path,
    flags.text(
        "--sites", "CSV", "Columns site, size_bytes, read_bytes, write_bytes, near_stall_s."
    ),
]
Near = Annotated[str, flags.text("--near", "PROFILE", "Near memory.")]
Far = Annotated[str, flags.text("--far", "PROFILE", "Far memory.")]
Compute = Annotated[
    str,
    typer.Option(
        "--compute",
        metavar="TIME",
        help="Wall time of the run without the stalls of the sites.",
        callback=flags.a_time,
    ),
]
Budget = Annotated[str | None, flags.size("--near-budget", "Near memory (default: any amount).")]
Plan = Annotated[
    Path | None,
    flags.text("--plan", "FILE", "Write a plan; the file of sites then requires a column rule."),
]
Nodes = Annotated[str, flags.text("--nodes", "NEAR:FAR", "Nodes of interleaved sites in the plan.")]


def interleave(
    sites: Sites,
    near: Near,
    far: Far,
    compute: Compute,
    near_budget: Budget = None,
    background: flags.Background = None,
    plan: Plan = None,
    nodes: Nodes = "0:1",
    json: flags.Json = None,
    quiet: flags.Quiet = False,
) -> None:
    """Predict which fraction of each site to place near so that a program is fastest.

    Each site lies near, far, or interleaved in eighths. Its stalls grow with the latency of its
    memory under the load of all sites together and of --background; latencies under load come from
    the profiles (`nearfar probe`, `nearfar profile import`), and no placement exceeds the
    bandwidth that they have. The search is exact for up to about ten sites; it says if it is not.

    CSV has a row for each site: its bytes, the bytes of its memory traffic in the run, and the wall
    time of its stalls on idle near memory; far_stall_s is the same for far memory (default: in
    proportion to the idle latencies).

    --plan writes the answer as a plan for `nearfar run --plan FILE --check -- PROGRAM`: sites on
    both memories have tiers with weights. The column rule of CSV has the conditions that name each
    site, such as `size=1MiB..` or `map=anonymous`.

    Examples:

        nearfar predict interleave --sites sites.csv --near ddr5 --far cxl-asic --compute 20s

        nearfar predict interleave --sites sites.csv --near ddr5 --far cxl-asic --compute 20s
        --near-budget 64GiB --background near=40GB/s --background far=5GB/s@67% --json -
    """
    from nearfar import api
    from nearfar.report.console import note
    from nearfar.report.printing import show
    from nearfar.report.terminal import predictions

    result = api.predict_interleave(
        sites,
        near,
        far,
        compute_s=parse_seconds(compute),
        near_budget=near_budget,
        background=background or (),
        plan=plan,
        nodes=nodes,
    )
    show("predict interleave", result, predictions.interleave(result), json)
    if plan is not None and not quiet:
        note(f"plan: {plan}")


VERBS = (interleave,)
