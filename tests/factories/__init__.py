"""Made-up records for tests, from plain formulas: no figure here was measured anywhere.

Every record says so itself: its machine is called "made-up test machine".
"""

from factories.advices import advice
from factories.benches import malloc, mapped, stream
from factories.probes import (
    access,
    bandwidth,
    blocks,
    latency,
    loaded,
    parallelism,
    persistence,
    tails,
)
from factories.runs import (
    advised,
    allocators,
    calm,
    close_knees,
    earlier,
    findings,
    hostile,
    interrupted,
    judged,
    machine,
    noisy,
    oversubscribed,
    study,
    together,
)
from factories.shaped import MACHINE_ID, around, shaped
from factories.sides import (
    compete,
    compete_foretold,
    pipeline,
    pipeline_foretold,
    published,
    stencil,
    stencil_split,
    stencil_with_alone,
)

__all__ = [
    "MACHINE_ID",
    "access",
    "advice",
    "advised",
    "allocators",
    "around",
    "bandwidth",
    "blocks",
    "calm",
    "close_knees",
    "compete",
    "compete_foretold",
    "earlier",
    "findings",
    "hostile",
    "interrupted",
    "judged",
    "latency",
    "loaded",
    "machine",
    "malloc",
    "mapped",
    "noisy",
    "oversubscribed",
    "parallelism",
    "persistence",
    "pipeline",
    "pipeline_foretold",
    "published",
    "shaped",
    "stencil",
    "stencil_split",
    "stencil_with_alone",
    "stream",
    "study",
    "tails",
    "together",
]
