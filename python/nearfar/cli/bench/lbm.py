"""``nearfar bench lbm``."""

from __future__ import annotations

from typing import Annotated

import typer

from nearfar.cli import flags, ranges
from nearfar.cli.bench import _programs


@flags.grouped
def lbm(
    steps: Annotated[
        int,
        typer.Option("--steps", metavar="N", min=1, max=ranges.MOST_COUNT, help="Time steps."),
    ] = 10,
    *,
    choice: _programs.Choice,
    shared: flags.Measuring,
) -> None:
    """Run a lattice Boltzmann fluid (D3Q19) on a periodic cube of -n cells per edge (32).

    Every run checks that mass is conserved and that a shear wave decays at the rate of the
    viscosity. Arrays come from malloc or from a tier of libhmalloc; the runs alternate, each in a
    fresh process. --trace times nothing: it writes the accesses to the arrays that pass the caches
    of the Seoul thesis, for `nearfar sim`.

    Examples:

        nearfar bench lbm -n 48 --steps 20

        nearfar bench lbm --allocator malloc --allocator hmalloc:near --runs 10

        nearfar bench lbm --trace lbm.trace --after l1
    """
    _programs.run("bench lbm", choice.of("lbm", 32, steps), shared)
