"""``nearfar bench lbm``."""

from __future__ import annotations

from typing import Annotated

import typer

from nearfar.cli import options, programs


@options.grouped
def lbm(
    steps: Annotated[
        int, typer.Option("--steps", metavar="N", min=1, help="Steps of the lattice.")
    ] = 10,
    *,
    choice: programs.Choice,
    shared: options.Measuring,
) -> None:
    """A lattice Boltzmann fluid (D3Q19, periodic cube), -n cells an edge (32).

    Every run checks that mass stays and a shear wave decays as the viscosity says. Arrays
    come from malloc or from a tier of libhmalloc, in turns, each run in a fresh
    process. --trace writes what passes the thesis' caches instead: the arrays' accesses alone, for
    `nearfar sim`.

    Examples:

        nearfar bench lbm -n 48 --steps 20

        nearfar bench lbm --allocator malloc --allocator hmalloc:near --runs 10

        nearfar bench lbm --trace lbm.trace --after l1
    """
    programs.run("bench lbm", choice.of("lbm", 32, steps), shared)
