"""``nearfar advise``: what first touches of pages cost, and on which bytes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from conftest import RunNearfar
from small_host import write_small_host
from tracing import needs_emulator

pytestmark = needs_emulator

SPARSE = """#include <stdlib.h>
#include <sys/mman.h>
int main(int argc, char** argv) {
  size_t bytes = strtoull(argv[1], 0, 10) << 20, pages = strtoull(argv[2], 0, 10);
  int map = argc > 3;
  volatile char* p = map ? mmap(0, bytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                         : malloc(bytes);
  if (!p || p == MAP_FAILED) return 1;
  for (int round = 0; round < 2; ++round)
    for (size_t i = 0; i < pages; ++i) p[i * (bytes / pages)] += 1;
  return 0;
}
"""
#: 2 us for a first touch of a page far, 1 us near; a first touch of a large page takes 100 us.
FIGURES = {"read_latency_ns": 100, "page_walk_ns": 0, "page_bytes": 4096, "first_touch_ns": 1000}


def write_device(file: Path, **others: float) -> Path:
    """A device profile in round numbers."""
    text = (
        f'schema_version = 1\nkind = "device"\nname = "{file.stem}"\ntitle = "{file.stem}"\n'
        'description = "for tests"\n[sources]\ntests = "synthetic, for tests"\n'
    )
    for key, value in {**FIGURES, **others}.items():
        unit = "B" if key.endswith("bytes") else "ns"
        text += f'[figures.{key}]\nunit = "{unit}"\nvalue = {value}\nsource = "tests"\n'
        text += 'confidence = "C"\n'
    file.write_text(text)
    return file


@pytest.fixture(scope="module")
def sparse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("sparse") / "sparse"
    program.with_suffix(".c").write_text(SPARSE)
    subprocess.run(["cc", "-g", "-o", str(program), f"{program}.c"], check=True)
    return program


def advice(run_nearfar: RunNearfar, tmp_path: Path, near: Path, far: Path, *program: str) -> Any:
    host = write_small_host(tmp_path / "small.toml")
    done = run_nearfar(
        "advise",
        "--emulate",
        "--near",
        str(near),
        "--far",
        str(far),
        "--host",
        str(host),
        "--json",
        "-",
        "--",
        *program,
    )
    assert done.code == 0, done.stderr
    return json.loads(done.stdout)


def first_touch_s(found: Any) -> dict[str, float]:
    kinds: dict[str, float] = {}
    for site in found["sites"]:
        kinds[site["kind"]] = kinds.get(site["kind"], 0.0) + site["first_touch_s"]
    return kinds


@pytest.mark.parametrize(
    ("how", "kind"), [(("4096", "1600"), "heap"), (("102400", "1600", "map"), "mapping")]
)
def test_only_touched_pages_cost_a_first_touch(
    sparse: Path, how: tuple[str, ...], kind: str, tmp_path: Path, run_nearfar: RunNearfar
) -> None:
    """1,600 pages of 4 or 100 GiB, once: not all pages, and not again under mapped memory."""
    near = write_device(tmp_path / "near.toml")
    far = write_device(tmp_path / "far.toml", first_touch_ns=2000)
    found = advice(run_nearfar, tmp_path, near, far, str(sparse), *how)
    added = found["time_all_far_s"] - found["time_near_s"]
    assert 1.6e-3 <= added <= 2.6e-3  # and pages of the loader, libc and the stack
    assert first_touch_s(found)[kind] == pytest.approx(1.6e-3, rel=0.05)
    assert sum(first_touch_s(found).values()) == pytest.approx(added, rel=0.05)
    assert found["movable_bytes"] + found["fixed_bytes"] <= 3000 * 4096


def test_large_pages_are_touched_as_often_as_there_are_large_pages(
    sparse: Path, tmp_path: Path, run_nearfar: RunNearfar
) -> None:
    """One small page in each large one: far memory on small pages saves the large pages' touches,
    but no more than the kernel's time."""
    near = write_device(tmp_path / "near.toml", page_bytes=2 << 20, first_touch_ns=100_000)
    far = write_device(tmp_path / "far.toml", first_touch_ns=2000)
    found = advice(run_nearfar, tmp_path, near, far, str(sparse), "3200", "1600")
    heap = next(site for site in found["sites"] if site["kind"] == "heap")
    assert heap["first_touch_s"] == pytest.approx(1600 * (2e-6 - 100e-6), rel=0.02)
    assert 0 < found["slowdown_all_far"] < 1
    assert sum(site["first_touch_s"] for site in found["sites"] if site["kind"] != "heap") == 0
