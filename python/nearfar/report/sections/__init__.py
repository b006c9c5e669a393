"""The sections of the report, one file each, in the order of the page."""

from __future__ import annotations

from collections.abc import Callable

from nearfar.report.section import Context, Section
from nearfar.report.sections import (
    access,
    advice,
    bandwidth,
    blocks,
    changes,
    compete,
    experiment,
    findings,
    intset,
    latency,
    loaded,
    machine,
    malloc,
    mapped,
    maps,
    parallelism,
    persistence,
    pipeline,
    programs,
    provenance,
    stencil,
    stream,
    structures,
    sweep,
    tails,
)

#: Each gives its section, or None where the record has nothing for it.
ORDER: tuple[Callable[[Context], Section | None], ...] = (
    sweep.section,
    advice.section,
    latency.section,
    blocks.section,
    tails.section,
    parallelism.section,
    loaded.section,
    bandwidth.section,
    access.section,
    stream.section,
    persistence.section,
    mapped.section,
    maps.section,
    intset.section,
    structures.section,
    compete.section,
    stencil.section,
    pipeline.section,
    malloc.section,
    programs.section,
    experiment.section,
    changes.section,
    machine.section,
    findings.section,
    provenance.section,
)
