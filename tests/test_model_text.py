"""Output of predictions: figures, terms, bounds, calibration."""

from __future__ import annotations

import io

import pytest
from rich.console import Console, RenderableType
from syrupy.assertion import SnapshotAssertion

from nearfar.model import contention, pipeline, split
from nearfar.model.published import pipeline_inputs
from nearfar.report.terminal import predictions as tables
from published import COLS, ROWS, TABLES, contention_model, machine, stencil


def contention_shown() -> RenderableType:
    return tables.contention(contention.predict(contention_model(), 5, 3))


def model_shown() -> RenderableType:
    return tables.contention_model(contention_model())


def split_shown() -> RenderableType:
    known = split.calibrate(machine(), split.read_calibration(str(stencil("ghost")), 8))
    question = split.Question(split.Array(ROWS, COLS, 8), "ghost", split.splits_of(16))
    return tables.split(split.predict(machine(), question, known))


def pipeline_shown() -> RenderableType:
    inputs = pipeline_inputs()
    row = pipeline.read_calibration(str(TABLES / "oslo_pipeline.csv"))
    return tables.pipeline(pipeline.predict(inputs, 16, pipeline.calibrate(inputs, row)))


@pytest.mark.parametrize("shown", [contention_shown, model_shown, split_shown, pipeline_shown])
def test_text(shown: object, snapshot: SnapshotAssertion) -> None:
    assert callable(shown)
    out = io.StringIO()
    Console(file=out, width=100, highlight=False).print(shown())
    assert out.getvalue() == snapshot
