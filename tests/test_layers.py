"""Layers only use lower layers: an upward include or import fails here.

The orders are those of ``tools/layers.py``; ``ARCHITECTURE.md`` repeats them for readers and is
compared.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import layers
from layers import NATIVE, NATIVE_TEST_ONLY, PYTHON

ROOT = Path(__file__).parent.parent


def native_violations(root: Path) -> list[str]:
    """Every quoted include below ``root`` that names no layer, or one above the file's own."""
    found = []
    for file, layer, target in layers.includes(root):
        where = f"{file.relative_to(root)} includes {target}"
        above = layers.layer_of_include(target)
        if target in NATIVE_TEST_ONLY:
            own = str(file.relative_to(root))
            is_test = own.endswith("_test.cpp") or file.parent.name == "fuzz"
            if not is_test and own not in NATIVE_TEST_ONLY | {"fuzz_driver.cpp"}:
                found.append(f"{where}: for tests alone")
        elif above not in NATIVE:
            found.append(f"{where}: no layer")
        elif layer in NATIVE and NATIVE.index(above) > NATIVE.index(layer):
            found.append(f"{where}: upward")
    return found


def python_violations(package: Path) -> list[str]:
    """Every import below ``package`` that is relative, or of a layer above the file's own."""
    found = []
    for file in sorted(package.rglob("*.py")):
        inside = file.relative_to(package).with_suffix("")
        own = None
        if inside.name != "__init__" or len(inside.parts) > 1:
            own = layers.python_layer(f"nearfar.{inside.parts[0]}")
        for module in layers.imports(ast.parse(file.read_text())):
            where = f"{file.relative_to(package)} imports {module}"
            if module == "nearfar.relative":
                found.append(f"{where}: write it absolutely")
                continue
            if own is None and module == "nearfar.api":  # the package exports it
                continue
            layer = layers.python_layer(module)
            if layer is not None and (own is None or layer > own):
                found.append(f"{where}: upward")
    return found


def test_native_layers_look_down() -> None:
    assert native_violations(ROOT / "native") == []
    assert native_violations(ROOT / "include" / "nearfar") == []


def test_python_layers_look_down() -> None:
    assert python_violations(ROOT / "python" / "nearfar") == []


def test_every_folder_is_a_layer() -> None:
    folders = {p.name for p in (ROOT / "native").iterdir() if p.is_dir() and p.name[0] != "."}
    assert folders <= set(NATIVE)
    found = [p for p in (ROOT / "python" / "nearfar").iterdir() if p.name[0] != "."]
    modules = {p.stem for p in found if p.suffix != ".pyi"}
    assert modules - {"__init__", "__pycache__", "py"} <= {n for layer in PYTHON for n in layer}


def test_an_upward_include_is_found(tmp_path: Path) -> None:
    for path, text in {
        "base/low.hpp": '#include "tier/spec.hpp"\n',
        "tier/spec.hpp": '#include "base/low.hpp"\n#include <vector>\n',
        "tier/spec_test.cpp": '#include "test_support.hpp"\n',
        "tier/spec.cpp": '  #  include "test_support.hpp"\n',
        "os/odd.cpp": '#include "elsewhere/x.hpp"\n',
    }.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    assert native_violations(tmp_path) == [
        "base/low.hpp includes tier/spec.hpp: upward",
        "os/odd.cpp includes elsewhere/x.hpp: no layer",
        "tier/spec.cpp includes test_support.hpp: for tests alone",
    ]


def test_an_upward_import_is_found(tmp_path: Path) -> None:
    for path, text in {
        "__init__.py": "from nearfar import units\n",
        "units.py": "def lazily():\n    from nearfar.measure.probe import run\n",
        "store.py": "import nearfar.cli\nfrom nearfar import __version__, errors\n",
        "measure/probe.py": "from nearfar import report\nfrom nearfar.machine import topo\n",
        "measure/__init__.py": "from . import probe\n",
        "cli/main.py": "import nearfar.report.html\nimport json\n",
    }.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    assert python_violations(tmp_path) == [
        "__init__.py imports nearfar.units: upward",
        "measure/__init__.py imports nearfar.relative: write it absolutely",
        "measure/probe.py imports nearfar.report: upward",
        "store.py imports nearfar.cli: upward",
        "units.py imports nearfar.measure.probe: upward",
    ]


def _listed(heading: str) -> list[list[str]]:
    """Names in the numbered list below a heading of ARCHITECTURE.md, in its order."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    section = text.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    items = re.findall(r"^\d+\. ((?:`\w+`(?:, )?)+)", section, re.MULTILINE)
    return [re.findall(r"`(\w+)`", item) for item in items]


def test_architecture_lists_the_native_layers_in_this_order() -> None:
    assert _listed("Native layers, bottom-up") == [[layer] for layer in NATIVE]


def test_architecture_lists_the_python_layers_in_this_order() -> None:
    listed = [sorted(layer) for layer in _listed("Python layers, bottom-up")]
    assert listed == [sorted(layer) for layer in PYTHON]


def test_the_picture_is_of_these_layers() -> None:
    drawn = (ROOT / "docs" / "pictures" / "layers.svg").read_text()
    assert drawn == layers.picture(ROOT), "run tools/layers.py docs/pictures/layers.svg"


def test_uses_that_follow_from_others_are_not_drawn() -> None:
    assert layers.direct({(1, 0), (2, 1), (2, 0), (3, 2), (3, 0)}) == {(1, 0), (2, 1), (3, 2)}
