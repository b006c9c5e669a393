"""Cost of an installed nearfar: bytes on disk, and the time until it answers.

Run it on a quiet machine from the checkout, after ``make build``:

    .venv/bin/python benchmarks/installed.py [REPEATS]

Builds the wheel and installs it into an empty virtual environment (``tools/wheel``, some minutes
the first time). Sizes are those of the files, not of the blocks that hold them. Times are of
processes of that environment from start to end, in turns, with their files in the page cache: the
median of REPEATS (21) with its 95 % interval.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from nearfar.stats import median

ROOT = Path(__file__).parent.parent
MB = 1e6


def size(path: Path) -> int:
    """Bytes of a file, or of all files below a folder."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file() and not file.is_symlink())


def seconds(command: list[str | Path], folder: Path) -> float:
    begin = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def sizes(folder: Path) -> None:
    (wheel,) = folder.glob("nearfar-*.whl")
    (site,) = (folder / "venv").glob("lib/python*/site-packages")
    print("| what | MB |\n|---|---|")
    for name, paths in {
        "the wheel": [wheel],
        "the installed package": sorted(site.glob("nearfar*")),
        "the virtual environment, with all it depends on and pip": [folder / "venv"],
    }.items():
        print(f"| {name} | {sum(map(size, paths)) / MB:.1f} |")


def times(folder: Path, repeats: int) -> None:
    programs = folder / "venv" / "bin"
    python = programs / "python"
    commands: dict[str, list[str | Path]] = {
        'python -c ""': [python, "-c", ""],
        'python -c "import nearfar"': [python, "-c", "import nearfar"],
        'python -c "import nearfar._native"': [python, "-c", "import nearfar._native"],
        "nearfar --help": [programs / "nearfar", "--help"],
        "nearfar topo": [programs / "nearfar", "topo"],
    }
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for repeat in range(-1, repeats):  # the first fills the page cache and is not counted
        for name, command in commands.items():
            time_s = seconds(command, folder)
            if repeat >= 0:
                taken[name].append(time_s)
    print("\n| process | ms |\n|---|---|")
    for name, all_s in taken.items():
        found = median([time_s * 1e3 for time_s in all_s])
        print(f"| `{name}` | {found.value:.0f} [{found.low:.0f}, {found.high:.0f}] |")


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 21
    with tempfile.TemporaryDirectory() as place:
        subprocess.run([ROOT / "tools" / "wheel", place], check=True)
        sizes(Path(place))
        times(Path(place), repeats)


if __name__ == "__main__":
    main()
