"""``nearfar predict pipeline``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from nearfar.cli import flags, ranges

NearCurve = Annotated[
    Path, flags.text("--near-curve", "CSV", "Columns threads and copy (MB/s), near.")
]
FarCurve = Annotated[
    Path, flags.text("--far-curve", "CSV", "Columns threads and copy (MB/s), far.")
]
Generate = Annotated[
    Path,
    flags.text(
        "--generate",
        "CSV",
        "Columns threads, generate_s, analyse_s: the same work in near memory alone.",
    ),
]
Elements = Annotated[int, flags.count("--elements", help="Elements of 8 bytes.")]
Iterations = Annotated[int, flags.count("--iterations")]
Threads = Annotated[
    int,
    flags.count(
        "--threads", least=2, most=ranges.MAX_THREADS, help="Threads to split between both sides."
    ),
]


def pipeline(
    near_curve: NearCurve,
    far_curve: FarCurve,
    generate: Generate,
    elements: Elements,
    iterations: Iterations,
    threads: Threads,
    calibrate: flags.Calibrate = None,
    json: flags.Json = None,
) -> None:
    """Predict the times of a pipeline, generation near and analysis far, by split of threads.

    Near threads generate the next vector while far threads copy the last one to far memory and
    analyze it there. CAL.csv is one measured row (columns near_threads, far_threads, generate_s,
    generate_idle_s, transfer_s, analyse_s, transfer_idle_s, total_s).

    Examples:

        nearfar predict pipeline --near-curve near.csv --far-curve far.csv --generate alone.csv
        --elements 16000000 --iterations 5000 --threads 16 --json -
    """
    from nearfar import api
    from nearfar.report.printing import show
    from nearfar.report.terminal import predictions

    result = api.predict_pipeline(
        api.PipelineCurves(near_curve, far_curve, generate),
        elements=elements,
        iterations=iterations,
        threads=threads,
        calibrate=calibrate,
    )
    show("predict pipeline", result, predictions.pipeline(result), json)


VERBS = (pipeline,)
