"""HM_TIER_VAR: global variables in a tier, their neighbors left where they are."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hmalloc_build import clean_environment, compile_c

NEIGHBORS = {"before": "private program", "after": "private program"}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_c(tmp_path_factory.mktemp("variables"), "tier_variables", linked=True)


def _run(program: Path, far: str | None) -> tuple[dict[str, str], str]:
    settings = {} if far is None else {"NEARFAR_HMALLOC_FAR": far}
    done = subprocess.run(
        [str(program)], env={**clean_environment(), **settings}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return dict(line.split(" ", 1) for line in done.stdout.splitlines()), done.stderr


@pytest.mark.parametrize("tail", ["", ",fork=copy"])
def test_in_a_file(program: Path, tmp_path: Path, tail: str) -> None:
    found, errors = _run(program, f"file:{tmp_path},capacity=16MiB{tail}")
    assert found["filled"] == found["table"] == "shared unnamed-file"
    assert {name: found[name] for name in NEIGHBORS} == NEIGHBORS
    assert found["values"] == "7 kept 11 13"
    assert found["child"] == "0, then 8"
    assert errors == ""


def test_on_a_node(program: Path) -> None:
    found, _ = _run(program, "numa:0")
    assert found["filled"] == found["table"] == "private memory"
    assert {name: found[name] for name in NEIGHBORS} == NEIGHBORS
    assert found["values"] == "7 kept 11 13"
    assert found["absent"] == "0"
    assert found["child"] == "0, then 8"


def test_without_a_far_tier_it_is_said(program: Path) -> None:
    found, errors = _run(program, None)
    if found["filled"] != "private program":
        pytest.skip("this machine has a node without processors, which is far")
    assert found["values"] == "7 kept 11 13"
    assert "variables of tier far stay near" in errors
