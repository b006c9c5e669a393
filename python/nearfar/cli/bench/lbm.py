"""``nearfar bench lbm``."""

from __future__ import annotations

from typing import Annotated

from nearfar.cli import flags
from nearfar.cli.bench import _programs

Steps = Annotated[int, flags.count("--steps", help="Time steps.")]


@flags.expand_dataclasses
def lbm(steps: Steps = 10, *, choice: _programs.Choice, shared: flags.Measuring) -> None:
    """Run a lattice Boltzmann fluid (D3Q19) on a cube of --problem-size cells per edge (32).

    The cube is periodic. Every run checks that mass is conserved and that a shear wave decays at
    the rate of the viscosity. Arrays come from malloc or from a tier of libhmalloc; the runs
    alternate, each in a fresh process. --trace times nothing: it writes the accesses to the arrays
    that pass the caches of the Seoul thesis, for `nearfar sim`.

    Examples:

        nearfar bench lbm --problem-size 48 --steps 20

        nearfar bench lbm --allocator malloc --allocator hmalloc:near --runs 10

        nearfar bench lbm --trace lbm.trace --after l1
    """
    _programs.run("bench lbm", "lbm", 32, choice, shared, steps)
