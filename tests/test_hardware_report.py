"""The archive of ``make test-hardware``: everything is in it, and no private names."""

from __future__ import annotations

import tarfile
from pathlib import Path

import hardware_report
import pytest

NAMES = {"/home/ada/nearfar": "CHECKOUT", "/home/ada": "HOME", "db7.example": "HOST", "ada": "USER"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/home/ada/nearfar/tests: failed", "CHECKOUT/tests: failed"),
        ("file:/home/ada/x by ada@db7.example", "file:HOME/x by USER@HOST"),
        ("Canada, adaptive, db7.examples", "Canada, adaptive, db7.examples"),
        ("eth0 52:54:00:ab:CD:ef", "eth0 MAC"),
        ("id 123e4567-e89b-12d3-a456-426614174000.", "id UUID."),
        ('<testsuite hostname="x" tests="1">', '<testsuite hostname="HOST" tests="1">'),
        ("PCI 0000:15:01.0 at 12:30:59", "PCI 0000:15:01.0 at 12:30:59"),
    ],
)
def test_names_are_replaced(text: str, expected: str) -> None:
    assert hardware_report.scrubbed(text, NAMES) == expected


def test_longer_names_come_first() -> None:
    lengths = [len(name) for name in hardware_report.private_names()]
    assert lengths == sorted(lengths, reverse=True)


def test_archive_has_no_owner_and_no_names(tmp_path: Path) -> None:
    folder = tmp_path / "report"
    (folder / "machine").mkdir(parents=True)
    (folder / "tests.txt").write_text("run by ada on db7.example")
    (folder / "machine" / "hwloc.xml").write_text("<topology/>")
    hardware_report.pack(folder, tmp_path / "report.tar.gz", NAMES)
    with tarfile.open(tmp_path / "report.tar.gz") as archive:
        entries = {entry.name: entry for entry in archive.getmembers()}
        text = archive.extractfile("hardware-report/tests.txt")
        assert text is not None
        assert text.read() == b"run by USER on HOST"
    assert "hardware-report/machine/hwloc.xml" in entries
    assert {(e.uid, e.gid, e.uname, e.gname) for e in entries.values()} == {(0, 0, "", "")}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report", "report.tar.gz"]
