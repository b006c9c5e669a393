"""``--far-rows`` of ``bench stencil``: a number, ``auto``, or a saved predicted split."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nearfar.errors import BadInputError

if TYPE_CHECKING:
    from nearfar.measure.balance import Balance
    from nearfar.measure.session import Effort, Session
    from nearfar.measure.stencil import StencilPlan
    from nearfar.model.results import SplitPrediction
    from nearfar.records.together import StencilSplit
    from nearfar.stats import Estimate

AUTO = "auto"


def parse_far_rows(text: str) -> int | Path | None:
    """A number of rows, None for ``auto``, or the file of a split. Raises BadInputError."""
    if text == AUTO:
        return None
    if text.isdecimal():
        return int(text)
    if Path(text).suffix == ".json":
        return Path(text)
    raise BadInputError(
        f"--far-rows {text} is not a number of rows",
        "give a number, auto, or the .json file that --split-only --json wrote",
    )


def read_split(path: Path, given: Sequence[str]) -> StencilSplit:
    """Read a saved split. Raises BadInputError if the file is not one, or if a field is ``given``
    that the split contains."""
    from pydantic import ValidationError

    from nearfar.files import read_json
    from nearfar.records.together import StencilSplit

    if given:
        raise BadInputError(
            f"--{given[0].replace('_', '-')} is held by {path}", "leave it out, or predict anew"
        )
    write_it = "write it with `nearfar bench stencil --far-rows auto --split-only --json FILE`"
    document = read_json(path, write_it)
    try:
        fields = StencilSplit.model_fields
        return StencilSplit.model_validate({k: v for k, v in document.items() if k in fields})
    except (ValidationError, ValueError, AttributeError) as error:
        first = error.errors()[0] if isinstance(error, ValidationError) else None
        where = f"{'.'.join(map(str, first['loc']))}: {first['msg']}" if first else "no JSON object"
        raise BadInputError(f"{path} is not a split of a stencil: {where}", write_it) from None


def check_predictable(plan: StencilPlan) -> None:
    """Reject, before measuring, threads and rows that no split can be predicted for."""
    if plan.teams.oversubscribed:
        raise BadInputError(
            "threads that share processors feed no prediction",
            "use fewer --near-threads or --far-threads, or give a number of --far-rows",
        )
    if min(plan.teams.near_threads, plan.teams.far_threads) < 1 or plan.rows < 3:
        raise BadInputError(
            "a split needs a thread on either side, and rows to share",
            "give --near-threads and --far-threads, and at least three --rows",
        )


def predict_split(
    session: Session, plan: StencilPlan, effort: Effort, last_cache: int
) -> StencilSplit:
    """Measure concurrent copies on both tiers and the stencil's near cost; predict a split."""
    from nearfar.measure import balance

    check_predictable(plan)
    measured = balance.measure(session, plan, effort, last_cache)
    prediction = _prediction(plan, measured)
    return _record(session, plan, measured, prediction)


def _prediction(plan: StencilPlan, measured: Balance) -> SplitPrediction:
    from nearfar.measure.stencil import ELEMENT_BYTES
    from nearfar.model import split
    from nearfar.model.competition import MeasuredPair
    from nearfar.model.split_cost import beyond_a_copy
    from nearfar.profiles import THIS, load_host
    from nearfar.workflows.predicting import cache_share

    threads = (plan.teams.near_threads, plan.teams.far_threads)
    pair = MeasuredPair(*threads, _triple(measured.near), _triple(measured.far))
    copy_s = ELEMENT_BYTES * threads[0] / measured.near_alone.value
    known = beyond_a_copy(measured.element.value, copy_s)
    # ELEMENT_BYTES is the traffic of an element: one read and one write.
    array = split.Array(plan.rows, plan.row_elements, ELEMENT_BYTES // 2)
    question = split.Question(array, plan.version, [threads])
    return split.predict(split.Machine(pair, cache_share(load_host(THIS))), question, known)


def _triple(estimate: Estimate) -> tuple[float, float, float]:
    return estimate.value, estimate.low, estimate.high


def _record(
    session: Session, plan: StencilPlan, measured: Balance, prediction: SplitPrediction
) -> StencilSplit:
    from nearfar import store
    from nearfar.model import published
    from nearfar.records.together import StencilSplit

    factors = [t.value for t in prediction.terms if t.name == "near traffic factor"]
    return StencilSplit(
        **_figures(session, plan, measured, prediction),
        kernel=plan.kernel,
        rows=plan.rows,
        cols=plan.cols,
        version=plan.version,
        near=plan.near,
        far=plan.far,
        near_threads=plan.teams.near_threads,
        far_threads=plan.teams.far_threads,
        far_rows=prediction.far_rows,
        traffic_factor=factors[0],
        calibration_level=prediction.calibration_level,
        calibration=prediction.calibration,
        predicted_on=store.now(),
        published=list(published.of_stencil()),
    )


def _figures(
    session: Session, plan: StencilPlan, measured: Balance, prediction: SplitPrediction
) -> dict[str, Any]:
    """Measured inputs and predicted times, as keyword arguments."""
    found = session.figures(
        plan.near,
        plan.far,
        near_bandwidth_bytes_per_s=measured.near,
        far_bandwidth_bytes_per_s=measured.far,
        near_alone_bandwidth_bytes_per_s=measured.near_alone,
        near_element_time_s=measured.element,
    )
    times = ("near_time_s", "far_time_s", "total_time_s")
    for part in ("intervals", "provenance"):
        found[part] |= {key: getattr(prediction, part)[key] for key in times}
    found["provenance"]["traffic_factor"] = prediction.provenance["total_time_s"]
    return found | {key: getattr(prediction, key) for key in times}
