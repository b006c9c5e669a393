"""Layers only look down: an upward include or import fails here, whatever else works.

The orders below are the only ones written in code; ``ARCHITECTURE.md`` repeats them for readers
and is compared.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent

#: Native layers that may know whom: each one the layers before it.
NATIVE = [
    "base",
    "os",
    "tier",
    "alloc",
    "topo",
    "kernels",
    "probe",
    "cache",
    "storelog",
    "persist",
    "structures",
    "inspect",
    "trace",
    "sim",
    "crash",
    "bench",
    "bind",
]
#: Public headers (include/nearfar) and the layer they are part of.
PUBLIC = {"nearfar": "persist"}
#: Beside the layers, for tests alone: they may be included by no source but a test.
NATIVE_TEST_ONLY = {"test_support.hpp", "sim/test_devices.hpp"}

#: Python layers; modules on one line may import each other.
PYTHON = [
    ["_native", "errors", "files", "units", "stats", "noise", "records", "store"],
    ["machine"],
    ["profiles"],
    ["measure"],
    ["simulate"],
    ["verify"],
    ["model"],
    ["place"],
    ["trace"],
    ["sweep"],
    ["report"],
    ["cli"],
]

_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def native_violations(root: Path) -> list[str]:
    """Every quoted include below ``root`` that names no layer, or one above the file's own."""
    found = []
    for file in sorted(root.rglob("*.[ch]pp")):
        layer = PUBLIC.get(root.name, file.relative_to(root).parts[0])
        for target in _INCLUDE.findall(file.read_text()):
            where = f"{file.relative_to(root)} includes {target}"
            above = PUBLIC.get(target.split("/")[0], target.split("/")[0])
            if target in NATIVE_TEST_ONLY:
                if not file.name.endswith("_test.cpp"):
                    found.append(f"{where}: for tests alone")
            elif above not in NATIVE:
                found.append(f"{where}: no layer")
            elif layer in NATIVE and NATIVE.index(above) > NATIVE.index(layer):
                found.append(f"{where}: upward")
    return found


def _python_layer(module: str) -> int | None:
    """The layer of ``nearfar.MODULE...``; None for the package itself, an error if unknown."""
    name = module.split(".")[1] if "." in module else ""
    if not name:
        return None
    return next(i for i, layer in enumerate(PYTHON) if name in layer)


def _imports(tree: ast.AST, names: set[str]) -> Iterator[str]:
    """Modules of nearfar that are imported anywhere, inside functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.split(".")[0] == "nearfar")
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                yield "nearfar.relative"
            elif node.module == "nearfar":
                yield from (f"nearfar.{a.name}" for a in node.names if a.name in names)
            elif node.module and node.module.startswith("nearfar."):
                yield node.module


def python_violations(package: Path) -> list[str]:
    """Every import below ``package`` that is relative, or of a layer above the file's own."""
    names = {name for layer in PYTHON for name in layer}
    found = []
    for file in sorted(package.rglob("*.py")):
        inside = file.relative_to(package).with_suffix("")
        own = _python_layer(f"nearfar.{inside.parts[0]}") if inside.name != "__init__" else None
        if inside.name == "__init__" and len(inside.parts) > 1:
            own = _python_layer(f"nearfar.{inside.parts[0]}")
        for module in _imports(ast.parse(file.read_text()), names):
            where = f"{file.relative_to(package)} imports {module}"
            if module == "nearfar.relative":
                found.append(f"{where}: write it absolutely")
                continue
            layer = _python_layer(module)
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
