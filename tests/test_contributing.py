"""The additions of CONTRIBUTING.md work in a copy of the checkout."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import nearfar._native
from documents import Command, follow, read

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "CONTRIBUTING.md"


def copied(folder: Path) -> Path:
    """The package alone, with the native core and its programs as they are built."""
    package = folder / "python" / "nearfar"
    shutil.copytree(
        ROOT / "python" / "nearfar", package, ignore=shutil.ignore_patterns("__pycache__")
    )
    for built in Path(nearfar._native.__file__).parent.iterdir():
        if not (package / built.name).exists():
            (package / built.name).symlink_to(built)
    tool = folder / "nearfar"
    site = Path(pytest.__file__).parent.parent
    # -S: without the hook by which the package of the checkout itself is found
    tool.write_text(
        f"#!/bin/sh\nPYTHONPATH={folder}/python:{site} exec {sys.executable} -S "
        '-m nearfar.cli.app "$@"\n'
    )
    tool.chmod(0o755)
    return folder


def run(command: str, folder: Path, timeout: int = 600) -> str:
    return follow(Command(command), folder, timeout)


def test_a_device_a_model_and_a_section_in_one_file_each(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    added, ran = [], 0
    for step in read(PAGE).steps:
        if isinstance(step, Command):
            follow(step, folder, 120)
            ran += 1
        elif step[0].startswith("python/"):
            assert not (folder / step[0]).exists()
            (folder / step[0]).write_text(step[1])
            added.append(step[0])
    assert [Path(name).parent.name for name in added] == ["devices", "predict", "sections"]
    assert ran == 6
    assert "average" in run("./nearfar predict --help", folder)
    page = (folder / "a-run" / "report.html").read_text()
    assert page.index("How long it took") < page.index('id="topic-more"')


@pytest.mark.long
def test_a_structure_a_tier_and_a_kernel_in_one_file_each(tmp_path: Path) -> None:
    names = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).split("\n")
    for name in filter(None, names):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name, follow_symlinks=False)
    written = dict(step for step in read(PAGE).steps if not isinstance(step, Command))
    for added in ("native/bench/sets/halves.cpp", "native/tier/kinds/memfd.cpp"):
        assert not (tmp_path / added).exists()
        (tmp_path / added).write_text(written[added])
    kernels = tmp_path / "native/kernels/arrays.cpp"
    kernels.write_text(patched(kernels.read_text(), written["native/kernels/arrays.cpp"]))
    build = "cmake --preset test -DNEARFAR_PYTHON=OFF && cmake --build --preset test --target"
    programs = ("tier_test", "kernels_test", "probe_test", "bench_test")
    run(f"{build} {' '.join(programs)}", tmp_path, 1800)
    for program in programs:
        run(f"build/editable/native/{program}", tmp_path, 300)
    env = {**os.environ, "CMAKE_BUILD_PARALLEL_LEVEL": "2"}
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "install",
            "-q",
            "--no-deps",
            "--no-build-isolation",
            "--target",
            tmp_path / "installed",
            tmp_path,
        ],
        check=True,
        env=env,
        timeout=1800,
    )
    site = Path(pytest.__file__).parent.parent
    tool = f"PYTHONPATH={tmp_path}/installed:{site} {sys.executable} -S -m nearfar.cli.app"
    out = run(f"{tool} bench intset --structure halves --runs 5 --time 2 --out set", tmp_path)
    assert "halves" in out
    # On a paced tier this is the first section, which no machine is too slow to begin.
    probe = f"{tool} probe --tier paced:dram@cxl-asic --time 10 --out probed --json -"
    out = run(probe, tmp_path, 300)
    assert '"kernel": "mean"' in out
    use_memfd(tool, tmp_path)
    run(f"{tool} report set && {tool} report probed", tmp_path)


def patched(text: str, change: str) -> str:
    """A change whose lines with a plus stand before the context that follows them, or after it."""
    lines = change.split("@@\n")[1].splitlines()
    context = next(line[1:] for line in lines if line.startswith(" "))
    at = lines.index(f" {context}")
    before = "\n".join(line[1:] for line in lines[:at])
    after = "\n".join(line[1:] for line in lines[at + 1 :])
    assert re.search(f"^{re.escape(context)}$", text, re.MULTILINE)
    return text.replace(context, f"{before}\n{context}\n{after}")


def use_memfd(tool: str, folder: Path) -> None:
    """The tier that was added, where a tier is measured and where a heap lies in it."""
    out = run(f"{tool} bench stream --tier memfd --threads 1 --size 16MiB --runs 5 --quiet", folder)
    assert "triad" in out
    assert "memfd" in out
    assert "emulated" not in out
    out = run(f"{tool} run --tier far=memfd,capacity=64MiB --stats -- sort {PAGE}", folder)
    assert re.search("far.*memfd", out)
    assert "memfd" in run(f"{tool} bench stream --tier ram; test $? = 2", folder)
    refused = run(f"{tool} bench map --tier memfd; test $? = 2", folder)
    assert "memfd cannot hold a pool" in refused
