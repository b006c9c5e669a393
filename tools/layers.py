"""The layers of the native core and of the Python package, what uses what, and a picture of it.

Usage: layers.py FILE.svg

The orders below are the only ones: ``tests/test_layers.py`` checks every include and import against
them, ``ARCHITECTURE.md`` lists them for readers, and the picture draws them.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent

#: Native layers, bottom-up: each may use the layers before it.
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
    "alloclog",
    "perf",
    "poolformat",
    "persist",
    "structures",
    "inspect",
    "trace",
    "sample",
    "sim",
    "interleave",
    "crash",
    "bench",
    "bind",
]
#: Public headers (include/nearfar) and the layer they are part of.
PUBLIC = {"nearfar": "persist"}
#: Outside of the layers: only tests and fuzz targets may include these.
NATIVE_TEST_ONLY = {
    "test_support.hpp",
    "fuzz_target.hpp",
    "perf/test_bytes.hpp",
    "sim/test_devices.hpp",
    "sim/test_runs.hpp",
    "trace/test_recording.hpp",
}

#: Python layers, bottom-up; modules on one line may import each other.
PYTHON = [
    [
        "_native",
        "errors",
        "extras",
        "files",
        "units",
        "student",
        "stats",
        "noise",
        "records",
        "store",
    ],
    ["machine"],
    ["process"],
    ["plan_files"],
    ["profiles"],
    ["measure"],
    ["simulation"],
    ["verify"],
    ["model"],
    ["place"],
    ["tracing"],
    ["sampling"],
    ["sweep"],
    ["comparison"],
    ["report"],
    ["workflows"],
    ["api"],
    ["cli"],
]

_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def includes(root: Path) -> Iterator[tuple[Path, str, str]]:
    """Every quoted include below ``root``: the file, the layer it is in, and what it includes."""
    for file in sorted(root.rglob("*.[ch]pp")):
        layer = PUBLIC.get(root.name, file.relative_to(root).parts[0])
        for target in _INCLUDE.findall(file.read_text()):
            yield file, layer, target


def layer_of_include(target: str) -> str:
    """The layer that an include names; the name itself where it is not a layer."""
    folder = target.split("/")[0]
    return PUBLIC.get(folder, folder)


def imports(tree: ast.AST) -> Iterator[str]:
    """Modules of nearfar that are imported anywhere, inside functions too."""
    names = {name for layer in PYTHON for name in layer}
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


def python_layer(module: str) -> int | None:
    """The layer of ``nearfar.MODULE...``; None for the package itself, an error if unknown."""
    name = module.split(".")[1] if "." in module else ""
    if not name:
        return None
    return next(i for i, layer in enumerate(PYTHON) if name in layer)


def native_uses(root: Path) -> set[tuple[int, int]]:
    """Pairs of layers, by number, of which the first uses the second."""
    found = set()
    for file, layer, target in includes(root):
        used = layer_of_include(target)
        if layer in NATIVE and used in NATIVE and not file.name.endswith("_test.cpp"):
            found.add((NATIVE.index(layer), NATIVE.index(used)))
    return {(user, used) for user, used in found if user != used}


def python_uses(package: Path) -> set[tuple[int, int]]:
    """The same for Python."""
    found = set()
    for file in sorted(package.rglob("*.py")):
        inside = file.relative_to(package).with_suffix("")
        if str(inside) == "__init__":
            continue
        own = python_layer(f"nearfar.{inside.parts[0]}")
        for module in imports(ast.parse(file.read_text())):
            used = python_layer(module)
            if own is not None and used is not None and own != used:
                found.add((own, used))
    return found


def direct(uses: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """Without the pairs that follow from others (transitive reduction)."""
    reach: dict[int, set[int]] = {}
    kept = set()
    for user in sorted({user for user, _ in uses}):
        targets = sorted((used for first, used in uses if first == user), reverse=True)
        reach[user] = set()
        for used in targets:
            if used not in reach[user]:
                kept.add((user, used))
            reach[user] |= {used, *reach.get(used, set())}
    return kept


_ROW, _WIDTH, _ARC, _TOP = 26, 150, 190, 40


def _column(title: str, names: Sequence[str], uses: set[tuple[int, int]], left: int) -> str:
    """One stack of layers, the lowest at the bottom, with an arc for each direct use."""
    last = len(names) - 1

    def middle(layer: int) -> int:
        return _TOP + (last - layer) * _ROW + _ROW // 2

    parts = [f'<text class="title" x="{left}" y="{_TOP - 14}">{title}</text>']
    for layer, name in enumerate(names):
        y = middle(layer) - _ROW // 2 + 2
        parts.append(f'<rect x="{left}" y="{y}" width="{_WIDTH}" height="{_ROW - 4}" rx="3"/>')
        parts.append(f'<text x="{left + 8}" y="{middle(layer) + 4}">{name}</text>')
    edge = left + _WIDTH
    for user, used in sorted(direct(uses)):
        bend = edge + 14 + (user - used) * (_ARC - 20) // last
        begin, end = middle(user), middle(used)
        parts.append(
            f'<path d="M{edge} {begin} C{bend} {begin} {bend} {end} {edge + 5} {end}" '
            f'marker-end="url(#tip)"><title>{names[user]} uses {names[used]}</title></path>'
        )
    return "\n".join(parts)


_STYLE = """\
text { font: 12px sans-serif; fill: #222 }
.title { font-weight: bold }
rect { fill: #e8eef7; stroke: #6b84a8 }
path { fill: none; stroke: #6b84a8; stroke-opacity: .7 }
#tip path { fill: #6b84a8; stroke: none }
svg { background: #fff }"""


def picture(root: Path) -> str:
    """All layers and their direct uses as SVG."""
    python = [layer[0] if len(layer) == 1 else "records, store, units …" for layer in PYTHON]
    gap = _WIDTH + _ARC
    width, height = 2 * gap + 20, _TOP + max(len(NATIVE), len(python)) * _ROW + 10
    tip = (
        '<marker id="tip" markerWidth="7" markerHeight="6" refX="6" refY="3" orient="auto">'
        '<path d="M0 0L7 3L0 6z"/></marker>'
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}">',
            f"<style>\n{_STYLE}\n</style>",
            f"<defs>{tip}</defs>",
            _column("Native core (C++)", NATIVE, native_uses(root / "native"), 10),
            _column("Python package", python, python_uses(root / "python" / "nearfar"), 10 + gap),
            "</svg>\n",
        ]
    )


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(picture(ROOT))
