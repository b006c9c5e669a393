"""A host with small caches, so that small programs miss them."""

from __future__ import annotations

from pathlib import Path

_HEAD = """schema_version = 1
kind = "host"
name = "small"
title = "a small host"
description = "for tests"
[sources]
tests = "synthetic, for tests"
"""
_FIGURES = {"l1d_bytes": 32768, "l1d_ways": 8, "l2_bytes": 262144, "l2_ways": 8, "cores": 1}


def write_small_host(file: Path, **others: int) -> Path:
    """Writes it, with ``others`` in place of its figures."""
    text = _HEAD
    for key, value in {**_FIGURES, **others}.items():
        unit = {"bytes": "B", "hz": "Hz"}.get(key.rpartition("_")[2], "count")
        text += f'[figures.{key}]\nunit = "{unit}"\nvalue = {value}\nsource = "tests"\n'
        text += 'confidence = "C"\n'
    file.write_text(text)
    return file
