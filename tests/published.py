"""Published tables and the models that tests make of them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from nearfar.model import contention, pipeline, split
from nearfar.model.curves import Curve, read_curves

TABLES = Path(__file__).parent / "data" / "published"
MODES = ("far-far", "far-near", "near-far")
MIB = 1 << 20
ROWS = COLS = 31623


def competition(mode: str) -> Path:
    return TABLES / f"oslo_compete_{mode}.csv"


@cache
def contention_model(mode: str = "far-far") -> contention.ContentionModel:
    return contention.fit(contention.read_measured(competition(mode)))


def machine() -> split.Machine:
    return split.Machine(contention_model(), split.CacheShare(MIB, 22 * MIB, 11))


def stencil(version: str) -> Path:
    return TABLES / f"oslo_stencil_{version}.csv"


def pipeline_inputs() -> pipeline.Inputs:
    def copy(side: str) -> Curve:
        return read_curves(TABLES / f"oslo_stream_{side}.csv", ("copy",), scale=1e6)["copy"]

    alone = read_curves(TABLES / "oslo_pipeline_near_only.csv", ("generate_s", "analyse_s"))
    return pipeline.Inputs(
        copy("near"), copy("far"), alone["generate_s"], alone["analyse_s"],
        pipeline.Work(16_000_000, 5_000),
    )  # fmt: skip
