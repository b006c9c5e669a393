"""The sections of the report, one file each, in the order of the page."""

from __future__ import annotations

from collections.abc import Callable

from nearfar.report.section import Context, Section
from nearfar.report.sections import (
    bandwidth,
    changes,
    findings,
    latency,
    machine,
    mapped,
    provenance,
    stream,
)

#: Each gives its section, or None where the record has nothing for it.
ORDER: tuple[Callable[[Context], Section | None], ...] = (
    latency.section,
    bandwidth.section,
    stream.section,
    mapped.section,
    changes.section,
    machine.section,
    findings.section,
    provenance.section,
)
