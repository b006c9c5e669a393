"""The wheel that `pip install .` makes, in a virtual environment that knows no checkout."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
#: Environment of a shell without variables of the checkout.
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "NO_COLOR": "1"}

pytestmark = pytest.mark.long


def run(folder: Path, *command: str | Path) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=ENVIRONMENT,
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where `nearfar` and `python` of the environment are."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([ROOT / "tools" / "wheel", folder], check=True)
    (wheel,) = folder.glob("nearfar-*-cp311-abi3-manylinux_*_x86_64.whl")
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    programs = folder / "venv" / "bin"
    pip = [str(programs / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, str(wheel)], check=True)
    return programs


def test_it_is_whole_and_knows_no_checkout(programs: Path, tmp_path: Path) -> None:
    python = programs / "python"
    assert "No broken requirements" in run(tmp_path, python, "-m", "pip", "check")
    where = run(tmp_path, python, "-c", "import nearfar; print(nearfar.__path__[0])").strip()
    assert Path(where).is_relative_to(programs.parent)
    assert [file.name for file in Path(where).glob("_native*.so")] == ["_native.abi3.so"]
    package = [file for file in Path(where).rglob("*") if file.suffix in ("", ".so")]
    linked = [file for file in package if file.is_file()]
    assert len(linked) > 8  # the native core, libraries and programs
    for file in linked:
        reported = run(tmp_path, "ldd", file)
        assert str(ROOT) not in reported
        assert "not found" not in reported


def test_a_study_measures_and_is_reported(programs: Path, tmp_path: Path) -> None:
    nearfar = programs / "nearfar"
    run(tmp_path, nearfar, "study", "--time", "20", "--quiet", "--out", "record")
    record = json.loads((tmp_path / "record" / "run.json").read_text())
    assert record["verb"] == "study"
    assert record["sections"]["latency"]
    page = tmp_path / "record" / "report.html"
    page.unlink()
    run(tmp_path, nearfar, "report", "record")
    assert "Latency of a load" in page.read_text()
    assert json.loads(run(tmp_path, nearfar, "topo", "--json", "-"))["tiers"]
    run(tmp_path, nearfar, "doctor")


@pytest.mark.parametrize(
    "command",
    [
        "run --tier far=shm: -- echo far",
        "bench malloc --test warm --threads 1 --allocator hmalloc:near --runs 5 --out record",
        "bench sort --problem-size 1024 --runs 5 --out record",
        "bench map --op get -n 1000 --runs 5 --counters simulated --out record",
        "crash check --structure list -n 20",
        "predict structure --structure hash --entries 1000 --far optane-100 --quiet",
        "sim --suite seoul",
        "sweep nicosia --dry-run",
        "show cxl-asic",
        "trace flags",
    ],
)
def test_programs_libraries_and_data_are_found(
    command: str, programs: Path, tmp_path: Path
) -> None:
    assert run(tmp_path, programs / "nearfar", *command.split())


#: Runs a verb, then prints which libraries are mapped.
LIBRARIES = """
import sys
from nearfar.cli.app import main
assert main(sys.argv[1:]) == 0
for line in open("/proc/self/maps"):
    if ".so" in line:
        print(line.split(maxsplit=5)[5].strip())
"""


def test_its_own_libpmem_is_used_not_that_of_the_system(programs: Path, tmp_path: Path) -> None:
    verb = "bench map --op get -n 1000 --runs 5 --counters simulated --out record --quiet"
    printed = run(tmp_path, programs / "python", "-c", LIBRARIES, *verb.split())
    libraries = {line for line in printed.splitlines() if "/libpmem" in line}
    assert {Path(line).parent.name for line in libraries} == {"nearfar.libs"}


def test_c_programs_are_built_with_its_headers_and_libraries(
    programs: Path, tmp_path: Path
) -> None:
    flags = run(tmp_path, programs / "nearfar", "config", "--cflags", "--libs").split()
    assert str(programs.parent) in " ".join(flags)
    source = ROOT / "examples" / "hmalloc" / "near_far.c"
    run(tmp_path, "cc", source, *flags, "-o", "near_far")
    assert str(programs.parent) in run(tmp_path, "ldd", "near_far")
    flags = run(tmp_path, programs / "nearfar", "config", "sim", "--cflags", "--libs").split()
    source = ROOT / "examples" / "cosimulation" / "core.c"
    run(tmp_path, "cc", source, *flags, "-o", "core")
    run(tmp_path, programs / "nearfar", "profile", "export", "hbm2-2000")
    assert "75000 reads" in run(tmp_path, tmp_path / "core", "hbm2-2000.device")
    installed = {path.name for path in programs.parent.rglob("*")}
    assert {"crash_intrinsics.h", "nearfar.pc", "nearfarConfig.cmake"} <= installed
