"""Optional packages: which extra installs them, and what works without them."""

from __future__ import annotations

import ast
import sys
import tomllib
from pathlib import Path

import pytest

import factories
from conftest import Printed
from nearfar import extras
from nearfar.cli.app import main
from nearfar.errors import MachineError
from nearfar.report.html.page import render
from pages import Page

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PACKAGES = {"vl_convert": "vl-convert-python"}


def _names(requirements: list[str]) -> set[str]:
    return {requirement.split(">")[0].split("=")[0] for requirement in requirements}


@pytest.mark.parametrize("extra", extras.EXTRAS)
def test_an_extra_installs_the_packages_of_its_modules(extra: str) -> None:
    packages = {PACKAGES.get(name, name) for name in extras.EXTRAS[extra]}
    assert _names(PROJECT["optional-dependencies"][extra]) == packages


def test_every_imported_package_is_required_or_of_an_extra() -> None:
    known = _names(PROJECT["dependencies"]) | {
        "elftools",  # of pyelftools
        *(name for modules in extras.EXTRAS.values() for name in modules),
        *sys.stdlib_module_names,
        "nearfar",
        "_typeshed",  # for type checkers
    }
    imported = set()
    for file in (ROOT / "python" / "nearfar").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                imported.add(node.module.split(".")[0])
    assert imported - known == set()


def test_a_missing_extra_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(MachineError) as refused:
        extras.require("charts", "the picture")
    assert refused.value.what == "the picture needs vl_convert, which is not installed"
    assert refused.value.next_step.endswith("-m pip install 'nearfar[charts]'")


def test_a_picture_without_charts_is_refused(
    tmp_path: Path, printed: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "c.csv"
    table.write_text("operations,loads\n1,1\n2,2\n3,3\n4,4\n")
    for name in extras.EXTRAS["charts"]:
        monkeypatch.setitem(sys.modules, name, None)
    picture = tmp_path / "p.svg"
    assert main(["fit", "counters", str(table), "--picture", str(picture)]) == 3
    assert "nearfar[charts]" in printed().err
    assert not picture.exists()


def test_a_report_without_charts_has_all_tables_open_and_says_how_to_draw(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn = Page(render(factories.study()))
    for name in extras.EXTRAS["charts"]:
        monkeypatch.setitem(sys.modules, name, None)
    text = render(factories.study())
    page = Page(text)
    assert drawn.tags.count("figure") > 1
    assert page.tags.count("figure") == 1, "the machine, which is drawn without the package"
    assert page.tags.count("table") == drawn.tags.count("table") > 0
    assert "nearfar[charts]" in text
    assert "<details open>" in text
