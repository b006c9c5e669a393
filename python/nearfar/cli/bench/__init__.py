"""``nearfar bench``: benchmarks, one for each workload."""

from __future__ import annotations

from nearfar.cli.bench import (
    compete,
    intset,
    lbm,
    malloc,
    map_,
    mapped,
    matmul,
    pipeline,
    sort,
    stencil,
    stream,
)
from nearfar.cli.verb_group import Verbs

group = Verbs(no_args_is_help=True, help="Run a benchmark of one workload.")
group.command()(stream.stream)
group.command()(mapped.mapped)
group.command()(compete.compete)
group.command()(stencil.stencil)
group.command()(pipeline.pipeline)
group.command()(malloc.malloc)
group.command("map")(map_.map_)
group.command()(intset.intset)
group.command()(sort.sort)
group.command()(lbm.lbm)
group.command()(matmul.matmul)
