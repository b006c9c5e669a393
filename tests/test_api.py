"""The Python API: public, lazy, documented, called by the command line; its notebook runs."""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars
import pytest

import nearfar
from conftest import Printed
from documents import missing
from nearfar import api
from nearfar.cli.app import main
from nearfar.cli.renamed import RENAMED, with_new_names
from nearfar.errors import BadInputError, MachineError
from nearfar.profiles import load_profile
from nearfar.records.frame import COLUMNS
from nearfar.report.terminal.simulation import simulated

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "python" / "nearfar"
NOTEBOOK = ROOT / "docs" / "tutorials" / "python.md"
FUNCTIONS = [name for name in api.__all__ if inspect.isfunction(getattr(api, name))]
_BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_importing_the_package_loads_no_other_module() -> None:
    script = "import nearfar, sys; print([m for m in sys.modules if m.startswith('nearfar.')])"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_the_package_exports_the_api_also_after_modules_are_loaded() -> None:
    assert set(nearfar.__all__) == {*api.__all__, "__version__"}
    for name in api.__all__:
        assert getattr(nearfar, name) is getattr(api, name)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = nearfar.nothing


def test_type_checkers_see_the_whole_api() -> None:
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    imported = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    names = {n.name for node in imported if node.module == "nearfar.api" for n in node.names}
    assert names == set(api.__all__)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_public_function_is_documented_and_called_by_the_command_line(name: str) -> None:
    assert getattr(api, name).__doc__
    assert f"| `{name}(" in (ROOT / "docs" / "reference" / "python.md").read_text()
    sources = [file.read_text() for file in (PACKAGE / "cli").rglob("*.py")]
    assert any(f"api.{name}(" in source for source in sources)


@pytest.mark.parametrize(
    "file", sorted((PACKAGE / "workflows").rglob("*.py")), ids=lambda p: p.stem
)
def test_workflows_print_nothing_and_use_no_command_line(file: Path) -> None:
    tree = ast.parse(file.read_text())
    imported = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module}
    imported |= {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    assert imported.isdisjoint({"typer", "nearfar.report.console", "nearfar.report.printing"})
    called = {
        n.func.id
        for n in ast.walk(tree)
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
    }
    assert called.isdisjoint({"print", "note", "print_result"})


def test_the_notebook_runs(in_tmp_path: None) -> None:
    blocks = _BLOCK.findall(NOTEBOOK.read_text())
    assert [kind for kind, _ in blocks] == ["python", "text"] * (len(blocks) // 2)
    names: dict[str, object] = {}
    for (_, code), (_, shown) in zip(blocks[::2], blocks[1::2], strict=True):
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(code, names)
        assert missing(shown.splitlines(), output.getvalue()) == [], code


def test_a_result_is_a_table() -> None:
    result = nearfar.simulate(nearfar.SimRequest(pattern="random", requests=2000))
    table = result.to_polars()
    assert table.columns == list(COLUMNS)
    row = table.filter((polars.col("key") == "time_s") & (polars.col("path") == ""))
    assert row["value"].to_list() == [getattr(result, "time_s")]  # noqa: B009 - of either model
    assert row["origin"].to_list() == ["simulated"]
    assert simulated(result) is not None


def test_a_table_without_polars_is_refused_with_the_next_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result = nearfar.simulate(nearfar.SimRequest(pattern="random", requests=2000))
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(MachineError) as refused:
        result.to_polars()
    assert refused.value.next_step is not None
    assert "pip install 'nearfar[parquet]'" in refused.value.next_step


def test_errors_of_the_native_core_are_errors_of_the_package() -> None:
    with pytest.raises(BadInputError) as refused:
        nearfar.probe("drma")
    assert "unknown tier 'drma'" in refused.value.what


@pytest.mark.parametrize(
    ("subject", "why"),
    [({}, "name one of"), ({"pid": 1, "emulate": True}, "a running process cannot be emulated")],
)
def test_a_subject_that_cannot_be_observed_is_refused(
    subject: dict[str, Any], why: str, tmp_path: Path
) -> None:
    with pytest.raises(BadInputError) as refused:
        nearfar.advise([], nearfar.Options(out=tmp_path / "run"), **subject)
    assert why in refused.value.what
    assert not (tmp_path / "run").exists()


def test_fields_without_effect_are_refused() -> None:
    with pytest.raises(BadInputError) as refused:
        nearfar.simulate(nearfar.SimRequest(pattern="random", cpu_time_s=1.0))
    assert "--cpu-time-s has no effect with --pattern" in refused.value.what


def test_loaded_profiles_are_the_models() -> None:
    assert nearfar.load("cxl-asic") == load_profile("cxl-asic")


@pytest.mark.parametrize("verb", RENAMED)
def test_an_old_name_of_a_flag_is_replaced_with_a_note(verb: str) -> None:
    words = verb.split()
    for old, new in RENAMED[verb].items():
        separate, note = with_new_names([*words, old, "5", "--", old])
        assert separate == [*words, new, "5", "--", old]
        assert note == [f"nearfar {verb} {old} is deprecated: use {new}"]
        joined, _ = with_new_names([*words, f"{old}=5" if old.startswith("--") else f"{old}5"])
        assert joined == [*words, f"{new}=5"]
        assert with_new_names([*words, new, "5"]) == ([*words, new, "5"], [])
        assert with_new_names(["bench", "map", old, "5"]) == (["bench", "map", old, "5"], [])


def test_an_old_name_of_a_flag_works(printed: Printed) -> None:
    assert main(["sim", "--pattern", "random", "-n", "2000", "--json", "-"]) == 0
    old = printed()
    assert old.err == "nearfar sim -n is deprecated: use --requests\n"
    assert main(["sim", "--pattern", "random", "--requests", "2000", "--json", "-"]) == 0
    counts = [
        re.sub(r'"(requests_per_s|.*host.*)".*', "", text) for text in (old.out, printed().out)
    ]
    assert '"requests": 2000' in counts[0]
    assert '"requests": 2000' in counts[1]
