"""Security cases of mimalloc-bench under several allocators.

Usage: security.py FOLDER [NAME=LIBRARY]...

FOLDER is ``bench/security`` of a checkout of mimalloc-bench. Builds its 116 programs in a temporary
folder and runs each three times under glibc, libhmalloc, the allocators of Debian that are
installed, and those that are named. A case is stopped if it does not print ``NOT_CAUGHT`` in any of
the runs: the allocator ended it with SIGABRT, it ended by SIGSEGV or another signal (*crashes*: an
inaccessible page, or damaged metadata), or what it looks for did not happen (*prevented*).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

LIBRARIES = Path("/usr/lib/x86_64-linux-gnu")
PRELOAD = Path(__file__).parent.parent / "build/editable/native/libhmalloc-preload.so"
#: By name: the library to preload, and its settings.
ALLOCATORS: dict[str, tuple[Path | None, dict[str, str]]] = {
    "libhmalloc, `NEARFAR_HMALLOC_HARDEN=all`": (PRELOAD, {"NEARFAR_HMALLOC_HARDEN": "all"}),
    "glibc 2.36": (None, {}),
    "libhmalloc": (PRELOAD, {}),
    "mimalloc": (LIBRARIES / "libmimalloc.so.2", {}),
    "tcmalloc": (LIBRARIES / "libtcmalloc_minimal.so.4", {}),
    "jemalloc": (LIBRARIES / "libjemalloc.so.2", {}),
}
SIZES = {"small": "8", "medium": "4096", "large": "256*1024"}
C_FLAGS = [
    "-fno-inline",
    "-fno-builtin-inline",
    "-fno-inline-small-functions",
    "-fno-ipa-pure-const",
]
ROUNDS = 3
TIMEOUT_S = 60


def build(cases: Path, folder: Path) -> list[Path]:
    """Compiles all cases as the release build of mimalloc-bench does."""
    common = ["-O3", "-DNDEBUG", "-w"]
    for source in sorted(cases.glob("*.c")):
        for name, size in SIZES.items():
            target = folder / f"{source.stem}_{name}"
            defined = f"-DALLOCATION_SIZE={size}"
            subprocess.run(["cc", *common, *C_FLAGS, defined, source, "-o", target], check=True)
    for source in sorted(cases.glob("*.cc")):
        flags = ["-std=c++17", "-fsized-deallocation", "-DALLOCATION_SIZE=4096"]
        subprocess.run(["c++", *common, *flags, source, "-o", folder / source.stem], check=True)
    return sorted(folder.iterdir())


def outcome(program: Path, environment: dict[str, str]) -> str:
    """End of one run."""
    try:
        done = subprocess.run(
            [program], env=environment, capture_output=True, timeout=TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return "not stopped"
    if b"NOT_CAUGHT" in done.stdout:
        return "not stopped"
    if done.returncode >= 0:
        return "prevented"
    return "reported" if done.returncode == -signal.SIGABRT else "crashes"


def main() -> None:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("LD_", "NEARFAR_"))}
    with tempfile.TemporaryDirectory() as folder:
        programs = build(Path(sys.argv[1]), Path(folder))
        allocators = dict(ALLOCATORS)
        for name, path in (argument.split("=") for argument in sys.argv[2:]):
            allocators[name] = (Path(path), {})
        print("allocator, stopped, reported, crashes, prevented, of")
        for name, (library, settings) in allocators.items():
            if library is not None and not library.exists():
                continue
            preload = {} if library is None else {"LD_PRELOAD": str(library)}
            counts: Counter[str] = Counter()
            for program in programs:
                ends = {outcome(program, {**clean, **settings, **preload}) for _ in range(ROUNDS)}
                counts["not stopped" if "not stopped" in ends else min(ends)] += 1
            stopped = len(programs) - counts["not stopped"]
            parts = [counts[end] for end in ("reported", "crashes", "prevented")]
            print(name, stopped, *parts, len(programs), sep=", ", flush=True)


if __name__ == "__main__":
    main()
