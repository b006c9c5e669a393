"""The cache layer against cachegrind: same program, same geometry, same policy."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from nearfar._native import CacheHierarchy

PROGRAMS = Path(__file__).parent / "programs"
LINE = 64
#: (bytes, ways) of the first levels and of the last: caches that these programs overflow.
GEOMETRIES = {
    "small": ((2048, 2), (4096, 4), (32768, 8)),
    "usual": ((32768, 8), (32768, 8), (262144, 16)),
}
KINDS = {"L": 0, "S": 1, "M": 2, "I": 3}
TOLERANCE = 0.001
#: Of an access over two lines ours looks up below only the line that is missing, cachegrind both:
#: in a small program a miss or two is more than a thousandth.
SLACK = 2

pytestmark = pytest.mark.skipif(
    not (shutil.which("valgrind") and shutil.which("gcc")),
    reason="valgrind or gcc is not installed: the cache layer is not compared with cachegrind",
)


def build(name: str, folder: Path) -> str:
    binary = folder / name
    subprocess.run(
        ["gcc", "-O1", "-static", str(PROGRAMS / f"{name}.c"), "-o", str(binary)], check=True
    )
    return str(binary)


def valgrind(*arguments: str) -> None:
    subprocess.run(["valgrind", *arguments], check=True, capture_output=True, timeout=600)


def address_stream(program: list[str], folder: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Addresses, sizes and kinds as lackey prints them, instructions among them."""
    file = folder / "trace"
    valgrind("--tool=lackey", "--trace-mem=yes", f"--log-file={file}", *program)
    addresses, sizes, kinds = [], [], []
    with file.open() as lines:
        for line in lines:
            if line[2:3] != " " or line.startswith("=="):
                continue
            address, size = line[3:].split(",")
            addresses.append(int(address, 16))
            sizes.append(int(size))
            kinds.append(KINDS[line[:2].strip()])
    return (
        np.array(addresses, dtype=np.uint64),
        np.array(sizes, dtype=np.uint8),
        np.array(kinds, dtype=np.uint8),
    )


def cachegrind(program: list[str], geometry: str, folder: Path) -> dict[str, int]:
    """Its summary by event: Ir, I1mr, ILmr, Dr, D1mr, DLmr, Dw, D1mw, DLmw."""
    file = folder / "cachegrind"
    shapes = [f"{size},{ways},{LINE}" for size, ways in GEOMETRIES[geometry]]
    options = [f"--{name}={shape}" for name, shape in zip(("I1", "D1", "LL"), shapes, strict=True)]
    valgrind(
        "--tool=cachegrind", "--cache-sim=yes", *options, f"--cachegrind-out-file={file}", *program
    )
    found = dict(
        line.split(": ")
        for line in file.read_text().splitlines()
        if line.startswith(("events:", "summary:"))
    )
    return dict(zip(found["events"].split(), map(int, found["summary"].split()), strict=True))


def ours(stream: tuple[np.ndarray, np.ndarray, np.ndarray], geometry: str) -> dict[str, int]:
    instructions, data, last = GEOMETRIES[geometry]
    caches = CacheHierarchy([data, last], instructions, LINE, "lru", 1)
    caches.access(*stream)
    first, below = caches.counters()
    return {
        "Ir": first["fetches"],
        "I1mr": first["fetch_misses"],
        "ILmr": below["fetch_misses"],
        "Dr": first["loads"],
        "D1mr": first["load_misses"],
        "DLmr": below["load_misses"],
        "Dw": first["stores"],
        "D1mw": first["store_misses"],
        "DLmw": below["store_misses"],
    }


def compare(name: str, arguments: list[str], geometry: str, folder: Path, slack: int) -> None:
    program = [build(name, folder), *arguments]
    theirs = cachegrind(program, geometry, folder)
    got = ours(address_stream(program, folder), geometry)
    for levels in (
        ("Dr", "Dw"),
        ("D1mr", "D1mw"),
        ("DLmr", "DLmw"),
        ("I1mr",),
        ("ILmr", "DLmr", "DLmw"),
    ):
        expected = sum(theirs[event] for event in levels)
        found = sum(got[event] for event in levels)
        assert expected > 300, "too few to compare"
        allowed = max(TOLERANCE * expected, slack)
        print(f"{name} {geometry} {'+'.join(levels)}: ours {found}, cachegrind {expected}")
        assert abs(found - expected) <= allowed, (levels, got, theirs)


SHORT = {"sort": ["2000"], "matmul": ["24"], "list": ["1500", "2"]}
LONG = {"sort": ["60000"], "matmul": ["100"], "list": ["20000", "8"]}


@pytest.mark.parametrize("name", SHORT)
def test_small_programs_miss_as_often(name: str, tmp_path: Path) -> None:
    compare(name, SHORT[name], "small", tmp_path, SLACK)


@pytest.mark.long
@pytest.mark.parametrize("name", LONG)
@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_programs_miss_as_often(name: str, geometry: str, tmp_path: Path) -> None:
    compare(name, LONG[name], geometry, tmp_path, 0)
