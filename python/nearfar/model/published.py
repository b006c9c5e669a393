"""Errors of the models against published tables: validation on measurements by others.

Computed from the tables that are shipped with the package (``profiles/published``), by the code
that predicts. A model that was fitted to a row is tested on other rows, never on that one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from nearfar.model import contention_fit, forms, pipeline, pipeline_here, sharing, split
from nearfar.model.curves import Curve, read_curves
from nearfar.model.tables import BYTES_PER_MB
from nearfar.profiles import load_host, published_table
from nearfar.records.choices import StencilVersion
from nearfar.records.forecasts import PublishedError

COMPETE_MODES = ("far-far", "far-near", "near-far")
STENCIL_VERSIONS: tuple[StencilVersion, ...] = ("direct", "ghost")
#: The work of the published pipeline.
PIPELINE_WORK = pipeline.Work(16_000_000, 5_000)
_ELEMENT_BYTES = 8


def _error(table: Path, what: str, errors: Sequence[float]) -> PublishedError:
    return PublishedError(
        table=table.name,
        what=what,
        cases=len(errors),
        mean_error=sum(map(abs, errors)) / len(errors),
        worst_error=max(errors, key=abs),
    )


def _copies(side: str) -> Curve:
    table = published_table(f"oslo_stream_{side}")
    return read_curves(table, ("copy",), scale=BYTES_PER_MB)["copy"]


# --- competition -----------------------------------------------------------------------------


@cache
def of_competition() -> tuple[PublishedError, ...]:
    """Rows predicted from each side alone; and each row from the others."""
    return (*_shared(), *_left_out())


def _shared() -> list[PublishedError]:
    """The law used here, from the published STREAM curves of both memories."""
    near, far = _copies("near"), _copies("far")
    table = published_table("oslo_compete_far-far")
    errors: dict[str, list[float]] = {"near": [], "far": []}
    for row in contention_fit.read_measured(table):
        d, v = row.near_threads, row.far_threads
        alone = sharing.Alone(near.at(d), far.at(v), near.at(d + v))
        got = sharing.at_once(alone, d, v, shared=True)
        errors["near"].append(got.near / row.near_bandwidth_bytes_per_s - 1)
        errors["far"].append(got.far / row.far_bandwidth_bytes_per_s - 1)
    return [
        _error(table, f"{side} rate, from STREAM on either memory alone", found)
        for side, found in errors.items()
    ]


def _left_out() -> list[PublishedError]:
    found = []
    for mode in COMPETE_MODES:
        table = published_table(f"oslo_compete_{mode}")
        rows = contention_fit.read_measured(table)
        for side in ("near", "far"):
            threads = [getattr(row, f"{side}_threads") for row in rows]
            speeds = [
                getattr(row, f"{side}_bandwidth_bytes_per_s") / n
                for row, n in zip(rows, threads, strict=True)
            ]
            errors = forms.errors_left_out(forms.choose, threads, speeds, 1)
            found.append(_error(table, f"{side} rate of each row, from the other rows", errors))
    return found


# --- stencil ---------------------------------------------------------------------------------


@cache
def of_stencil() -> tuple[PublishedError, ...]:
    """Times of each version: without fits, and calibrated by the other version's row."""
    rows = contention_fit.read_measured(published_table("oslo_compete_far-far"))
    model = contention_fit.fit(rows)
    host = load_host("xeon-6130")
    cache_share = split.CacheShare(
        host.scalar("l2_bytes"), host.scalar("l3_bytes"), int(host.scalar("l3_ways"))
    )
    machine = split.Machine(model, cache_share)
    found = []
    for version, other in zip(STENCIL_VERSIONS, reversed(STENCIL_VERSIONS), strict=True):
        found += _versions(machine, version, other)
    return tuple(found)


def _versions(
    machine: split.Machine, version: StencilVersion, other: StencilVersion
) -> list[PublishedError]:
    table = published_table(f"oslo_stencil_{version}")
    (row,) = split.read_calibration(str(table), _ELEMENT_BYTES)
    known = split.calibrate(
        machine,
        split.read_calibration(str(published_table(f"oslo_stencil_{other}")), _ELEMENT_BYTES),
    )
    question = split.Question(
        row.array,
        version,
        [(row.near_threads, row.far_threads)],
        row.far_rows,
    )
    found = []
    for words, calibration in (
        ("nothing fitted", None),
        (f"calibrated by the row of {other}", known),
    ):
        got = split.predict(machine, question, calibration)
        for side, measured in (("near", row.near_s), ("far", row.far_s), ("total", row.total_s)):
            error = getattr(got, f"{side}_time_s") / measured - 1
            found.append(_error(table, f"{side} time, {words}", [error]))
    return found


# --- pipeline --------------------------------------------------------------------------------


def pipeline_inputs() -> pipeline.Inputs:
    """All published inputs of the published pipeline."""
    alone = read_curves(published_table("oslo_pipeline_near_only"), ("generate_s", "analyse_s"))
    return pipeline.Inputs(
        _copies("near"), _copies("far"), alone["generate_s"], alone["analyse_s"], PIPELINE_WORK
    )


@cache
def of_pipeline() -> tuple[PublishedError, ...]:
    """Stages and total of the published row, without fits."""
    table = published_table("oslo_pipeline")
    row = pipeline.read_calibration(str(table))
    inputs = pipeline_inputs()
    threads = (row.near_threads, row.far_threads)
    known = pipeline_here.of_published(inputs, row.far_threads)
    laws = {
        "nothing fitted, loads that wait": pipeline_here.predict(known, *threads, waits=True),
        "nothing fitted, loads fetched ahead": pipeline_here.predict(known, *threads),
    }
    measured = {
        "generate": row.generate_s,
        "transfer": row.transfer_s,
        "analyse": row.analyse_s,
        "total": row.total_s,
    }
    return tuple(
        _error(table, f"{stage} time, {words}", [getattr(times, stage) / seconds - 1])
        for words, times in laws.items()
        for stage, seconds in measured.items()
    )
