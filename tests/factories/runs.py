"""Made-up runs."""

from __future__ import annotations

from typing import Any

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
from factories.shaped import MACHINE_ID
from factories.sides import compete_foretold, pipeline_foretold, stencil_with_alone
from nearfar.records.noise import FigureVerdict, NoiseRecord, Reliability, SeriesVerdict
from nearfar.records.results import Knee
from nearfar.records.run import Finding, Run, Sections, Skipped
from nearfar.units import GIB, KIB, MIB


def allocators() -> Run:
    """The malloc tests of the Seoul thesis."""
    return study(sections=Sections(malloc=malloc()))


def together() -> Run:
    """Near and far memory at work together: the verbs after the Oslo thesis."""
    return study(
        sections=Sections(
            compete=compete_foretold(4),
            stencil=stencil_with_alone(),
            pipeline=pipeline_foretold(),
        )
    )


def machine() -> dict[str, Any]:
    return {
        "id": MACHINE_ID,
        "processor": "Made-up test processor 2.5 GHz",
        "kernel": "6.1.0-made-up",
        "virtual_machine": "kvm",
        "memory_bytes": 16 * GIB,
        "nodes": [
            {
                "id": 0,
                "size_bytes": 16 * GIB,
                "cpus": [0, 1],
                "cpuless": False,
                "distances": {"0": 10},
                "read_latency_ns": 85.0,
                "provenance": {
                    "read_latency_ns": {"origin": "modelled", "statistic": "claim", "samples": 0}
                },
            }
        ],
        "caches": [
            {"level": 1, "type": "data", "size_bytes": 48 * KIB, "line_bytes": 64, "cpus": [0, 1]},
            {"level": 2, "type": "unified", "size_bytes": 2 * MIB, "line_bytes": 64, "cpus": [0]},
            {"level": 3, "type": "unified", "size_bytes": 300 * MIB, "line_bytes": 64, "cpus": [0]},
        ],
        "cpus": [{"id": i, "core": i, "package": 0, "node": 0, "usable": True} for i in range(2)],
        "memory_mode": None,
        "pmem_regions": [],
        "dax_devices": [],
        "cxl_devices": [],
        "tiers": [
            {
                "name": "DRAM",
                "spec": "dram",
                "alias": "near",
                "capacity_bytes": 16 * GIB,
                "medium": "DRAM",
                "persistence": "none",
                "persistence_reason": "anonymous memory",
            },
            {
                "name": "shared memory",
                "spec": "shm:",
                "alias": "far",
                "capacity_bytes": 8 * GIB,
                "medium": "DRAM",
                "persistence": "emulated",
                "persistence_reason": "tmpfs is DRAM",
            },
        ],
    }


def findings() -> list[Finding]:
    return [
        Finding(check="clock source", level="ok", found="tsc", why="", fix=""),
        Finding(
            check="virtual machine",
            level="warning",
            found="kvm",
            why="neighbors take processor time and caches are reported that are not there",
            fix="measure on bare metal, or read the noise verdict",
        ),
        Finding(
            check="huge pages",
            level="note",
            found="none reserved",
            why="pages=2m cannot run",
            fix="sysctl vm.nr_hugepages=512",
        ),
        Finding(
            check="frequency governor",
            level="unknown",
            found="not reported by the kernel",
            why="",
            fix="",
        ),
    ]


def calm() -> NoiseRecord:
    return NoiseRecord(
        noisy=False,
        reasons=[],
        foreign_cpus=0.03,
        steal=0.001,
        least_cpu_share=0.998,
        worst_spread=0.06,
    )


def study(**changes: Any) -> Run:
    """A finished, calm study with every section; ``changes`` replace fields of the run."""
    fields: dict[str, Any] = {
        "nearfar_version": "0.1.0",
        "verb": "study",
        "arguments": {"tier": None, "seed": 1},
        "started": "2025-01-02T03:04:05Z",
        "ended": "2025-01-02T03:06:07Z",
        "status": "finished",
        "seed": 1,
        "machine": machine(),
        "findings": findings(),
        "noise": calm(),
        "sections": Sections(
            latency=latency(),
            bandwidth=bandwidth(),
            stream=stream(),
            mapped=mapped(),
            parallelism=parallelism(),
            blocks=blocks(),
            access=access(),
            persistence=persistence(),
            loaded=loaded(),
            tails=tails(),
        ),
        "skipped": [],
    }
    return Run(**{**fields, **changes})


def earlier() -> Run:
    """The same machine, measured before, with slower memory and no mapped section."""
    sections = Sections(latency=latency(factor=1.2), bandwidth=bandwidth(), stream=stream())
    return study(started="2024-12-01T00:00:00Z", ended="2024-12-01T00:02:00Z", sections=sections)


def interrupted() -> Run:
    """Stopped after the latency section."""
    return study(
        status="interrupted",
        sections=Sections(latency=latency()),
        noise=None,
        skipped=[Skipped(section="bandwidth", what="all of it", why="interrupted before it began")],
    )


def noisy() -> Run:
    reasons = ["other processes used 0.97 processors", "read on dram spread by 41%"]
    return study(
        noise=NoiseRecord(
            noisy=True,
            reasons=reasons,
            foreign_cpus=0.97,
            steal=0.0,
            least_cpu_share=0.71,
            worst_spread=0.41,
        )
    )


def judged() -> Run:
    """A study with a verdict on each section: bandwidth disturbed, STREAM unusable."""
    steady = FigureVerdict(figure="1 MiB", verdict=Reliability.STEADY, reason="edge", spread=0.6)
    wide = FigureVerdict(figure="read", verdict=Reliability.DISTURBED, reason="wide", spread=0.4)
    rows: tuple[tuple[str, str, list[str], FigureVerdict], ...] = (
        ("latency", "steady", [], steady),
        ("bandwidth", "disturbed", ["wide"], wide),
    )
    series = [
        SeriesVerdict(
            section=section,
            series=f"{section} dram",
            verdict=Reliability(verdict),
            reasons=reasons,
            figures=[figure],
        )
        for section, verdict, reasons, figure in rows
    ]
    series.append(
        SeriesVerdict(
            section="stream",
            series="stream",
            verdict=Reliability.UNUSABLE,
            reasons=["threads ran only 40% of their time"],
            set_aside=3,
        )
    )
    loud = calm().model_copy(update={"noisy": True, "judged": series})
    return study(noise=loud)


def close_knees() -> Run:
    """Three knees, two of them so near that their labels would overlap."""
    result = latency()
    result.knees = [
        Knee(region_bytes=size, low=size * 3 // 4, high=size * 5 // 4)
        for size in (32 * KIB, 555_418, 2 * MIB)
    ]
    return study(sections=Sections(latency=result))


def oversubscribed() -> Run:
    """More threads than processors, arrays that fit the cache, and an emulated tier."""
    tiers = ("dram", "shm:")
    speeds = bandwidth(tiers, (1, 2, 4, 8, 16), 8)
    speeds.in_cache = True
    small = stream((1, 2, 4, 8, 16), 8)
    small.in_cache = True
    return study(sections=Sections(latency=latency(tiers), bandwidth=speeds, stream=small))


def hostile() -> Run:
    """Strings that would be markup if they were not escaped."""
    evil = "<script>alert('nearfar')</script>\"><img src=x onerror=alert(1)>"
    sections = Sections(latency=latency((evil,)), bandwidth=bandwidth((evil,)), mapped=mapped(evil))
    return study(
        sections=sections,
        machine={**machine(), "processor": evil, evil: evil},
        findings=[Finding(check=evil, level="warning", found=evil, why=evil, fix=evil)],
        skipped=[Skipped(section=evil, what=evil, why=evil)],
    )


def advised(sites: int = 40) -> Run:
    """Advice on a program, with as many sites."""
    result = advice(sites)
    arguments = {"program": result.program}
    return study(sections=Sections(advice=result), verb="advise", arguments=arguments)
