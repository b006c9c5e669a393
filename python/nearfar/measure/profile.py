"""Build a device profile from the results of ``probe``, in the format of the shipped profiles."""

from __future__ import annotations

from collections.abc import Iterator

from nearfar.measure.host_figures import SOURCE, measured
from nearfar.profiles.loaded_curves import Loaded, open_ends
from nearfar.records.depth import LoadedResult, PersistenceResult
from nearfar.records.figures import FigureModel, Origin
from nearfar.records.profile import Figure, Profile
from nearfar.records.results import BandwidthResult, LatencyResult
from nearfar.records.run import Run

Named = tuple[str, Figure]


def profile_of(run: Run, name: str, tier: str) -> Profile:
    """The profile of the run's first tier, with all figures that were measured."""
    sections = run.sections
    named: list[Named] = []
    if sections.latency:
        named += _latency(sections.latency)
    if sections.bandwidth:
        named += _bandwidth(sections.bandwidth, tier)
    if sections.persistence:
        named += _persistence(sections.persistence)
    if sections.loaded:
        named.append(("read_latency_by_load_ns", loaded_figure(sections.loaded)))
    if sections.parallelism:
        parallelism = sections.parallelism
        named.append(("read_parallelism", _scalar(parallelism, "parallelism", "count")))
    processor = run.machine.get("processor", "unknown processor")
    noisy = run.noise is not None and run.noise.noisy
    return Profile(
        name=name,
        title=f"{tier} of {processor}",
        description="Measured by nearfar probe."
        + (" The run was disturbed: repeat it on an idle machine." if noisy else ""),
        machine=f"{processor}, kernel {run.machine.get('kernel', 'unknown')}, "
        f"id {run.machine.get('id', 'unknown')}",
        sources={SOURCE: f"nearfar {run.nearfar_version} probe, {run.started}, seed {run.seed}"},
        figures={
            key: figure.model_copy(
                update={"date": run.started, "confidence": _confidence(figure, noisy)}
            )
            for key, figure in named
        },
    )


def _confidence(figure: Figure, noisy: bool) -> str:
    """A: measured here; B: the memory was emulated; C: the run was disturbed."""
    if noisy:
        return "C"
    return "A" if figure.origin is Origin.MEASURED else "B"


def _origin(shaped: FigureModel, key: str) -> tuple[Origin, str | None]:
    provenance = shaped.provenance[key]
    return provenance.origin, provenance.note or None


def _scalar(shaped: FigureModel, key: str, unit: str) -> Figure:
    value, low, high = shaped.estimate(key)
    return measured(unit, value, low, high, *_origin(shaped, key))


def _curve(unit: str, x: list[str], rows: list[tuple[list[float], FigureModel, str]]) -> Figure:
    """Points in the given order: coordinates, and the result and key that hold the value."""
    estimates = [(at, shaped.estimate(key)) for at, shaped, key in rows]
    origin, note = _origin(rows[0][1], rows[0][2])
    return Figure(
        unit=unit,
        x=x,
        points=[[*at, value] for at, (value, _, _) in estimates],
        ranges=[(low, high) for _, (_, low, high) in estimates],
        source=SOURCE,
        confidence="A",
        origin=origin,
        note=note,
    )


def _latency(result: LatencyResult) -> Iterator[Named]:
    curve = result.curves[0]
    far = max(curve.points, key=lambda p: p.region_bytes)
    yield "read_latency_ns", _scalar(far, "latency_ns", "ns")
    rows = [([float(p.region_bytes)], p, "latency_ns") for p in curve.points]
    yield "read_latency_by_region_ns", _curve("ns", ["region_bytes"], rows)  # type: ignore[arg-type]


def _bandwidth(result: BandwidthResult, tier: str) -> Iterator[Named]:
    for kernel, best in (("read", "read"), ("ntwrite", "write"), ("copy", "copy")):
        points = [
            p
            for p in result.points
            if p.kernel == kernel and p.tier == tier and not p.oversubscribed
        ]
        if not points:
            continue
        top = max(points, key=lambda p: p.bandwidth_bytes_per_s)
        key = "bandwidth_bytes_per_s"
        yield f"{best}_{key}", _scalar(top, key, "B/s")
        rows = [([float(p.threads)], p, key) for p in points]
        yield f"{kernel}_bandwidth_by_threads_bytes_per_s", _curve("B/s", ["threads"], rows)  # type: ignore[arg-type]


def _persistence(result: PersistenceResult) -> Iterator[Named]:
    names = {"ntstore": "write_latency_ns", "clwb": "flush_latency_ns", "msync": "msync_latency_ns"}
    for point in result.points:
        first = point.block_bytes == 64 and point.blocks_per_fence == 1
        if first and point.how in names:
            yield names[point.how], _scalar(point, "fence_ns", "ns")


def loaded_figure(result: LoadedResult) -> Figure:
    """Latency by bandwidth, one curve for each fraction of reads.

    The note names the curves that the CPUs of this machine could not drive to saturation. Nothing
    is known about bandwidths beyond their ends.
    """
    rows = [
        ([p.reads / (p.reads + p.writes), p.bandwidth_bytes_per_s], p, "latency_ns")
        for p in result.points
    ]
    figure = _curve("ns", ["read_share", "bandwidth_bytes_per_s"], rows)  # type: ignore[arg-type]
    curves: dict[float, list[Loaded]] = {}
    for (share, bandwidth), point, _ in rows:
        curves.setdefault(share, []).append(Loaded(bandwidth, point.latency_ns))
    note = "; ".join(filter(None, (figure.note, open_ends(curves)))) or None
    return figure.model_copy(update={"note": note})
