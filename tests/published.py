"""Published tables and the models that tests make of them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from nearfar.model import contention, contention_fit, split
from nearfar.profiles import published_table

TABLES = published_table("ucy_map_get").parent
MODES = ("far-far", "far-near", "near-far")
MIB = 1 << 20
ROWS = COLS = 31623


def competition(mode: str) -> Path:
    return TABLES / f"oslo_compete_{mode}.csv"


@cache
def contention_model(mode: str = "far-far") -> contention.ContentionModel:
    return contention_fit.fit(contention_fit.read_measured(competition(mode)))


def machine() -> split.Machine:
    return split.Machine(contention_model(), split.CacheShare(MIB, 22 * MIB, 11))


def stencil(version: str) -> Path:
    return TABLES / f"oslo_stencil_{version}.csv"
