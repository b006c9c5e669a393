"""Run the tests of real hardware, and put what they report into an archive to send back.

Usage: hardware_report.py

Writes build/hardware-report.tar.gz: results of the tests with the reasons of skips, ``nearfar
doctor``, and the machine as ``nearfar topo --save`` describes it. Names of the host, the user and
their folders, addresses of network devices and UUIDs are replaced. Exits with the code of the
tests.
"""

from __future__ import annotations

import getpass
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "build" / "hardware-report"
ARCHIVE = ROOT / "build" / "hardware-report.tar.gz"

#: Shorter names are not replaced everywhere, because they are parts of other words.
_SHORTEST_NAME = 4
_PATTERNS = (
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE), "UUID"),
    (re.compile(r"\b[0-9a-f]{2}(:[0-9a-f]{2}){5}\b", re.IGNORECASE), "MAC"),
    (re.compile(r'hostname="[^"]*"'), 'hostname="HOST"'),
)


def _paths() -> dict[str, str]:
    """Mount points of devices, and swap areas: the names are the user's."""
    swaps = Path("/proc/swaps").read_text(errors="replace").splitlines()[1:]
    found = {line.split()[0]: f"swap{i}" for i, line in enumerate(swaps)}
    for line in Path("/proc/self/mounts").read_text(errors="replace").splitlines():
        source, point = line.split()[:2]
        if source.startswith("/dev/") and point.count("/") > 1:
            found[point] = f"/mnt/{Path(source).name}"
    return found


def private_names() -> dict[str, str]:
    """Names of this machine and its user, with what replaces them; the longest first."""
    host = os.uname().nodename
    found = {
        str(ROOT): "CHECKOUT",
        str(Path.home()): "HOME",
        host: "HOST",
        host.partition(".")[0]: "HOST",
        getpass.getuser(): "USER",
        **_paths(),
    }
    kept = {
        name: to for name, to in found.items() if len(name) >= _SHORTEST_NAME and name != "root"
    }
    return dict(sorted(kept.items(), key=lambda each: -len(each[0])))


def scrubbed(text: str, names: dict[str, str]) -> str:
    """The text without private names."""
    for name, replacement in names.items():
        text = re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", replacement, text)
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    return text


def _run(output: str, *command: str, shown: bool = True) -> int:
    """Run a command and write what it prints to a file of the report."""
    with (FOLDER / output).open("w") as file:
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert process.stdout is not None
        for line in process.stdout:
            if shown:
                print(line, end="", flush=True)
            file.write(line)
    return process.wait()


def pack(folder: Path, into: Path, names: dict[str, str]) -> None:
    """Replace names in the files of a folder, and make an archive of it."""
    for path in folder.iterdir():
        if path.is_file():
            path.write_text(scrubbed(path.read_text(errors="replace"), names))

    def anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        return entry

    partial = into.with_name(f"{into.name}.partial")
    with tarfile.open(partial, "w:gz") as archive:
        archive.add(folder, arcname="hardware-report", filter=anonymous)
    partial.replace(into)


def main() -> int:
    """Run, collect, replace names, pack."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    tests = ("-m", "hardware", "-rs", "-q", "-p", "no:cacheprovider", "tests/hardware")
    junit = FOLDER / "junit.xml"
    code = _run("tests.txt", sys.executable, "-m", "pytest", *tests, f"--junitxml={junit}")
    # As text, names could be broken over lines.
    doctor = _run("doctor.json", "./nearfar", "doctor", "--json", "-", shown=False)
    saved = _run("topo.txt", "./nearfar", "topo", "--save", str(FOLDER / "machine"), shown=False)
    pack(FOLDER, ARCHIVE, private_names())
    print(f"\nReport to send back: {ARCHIVE}\nIt is plain text: read it first (tar xzf).")
    return code or doctor or saved


if __name__ == "__main__":
    sys.exit(main())
