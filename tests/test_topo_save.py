"""``nearfar topo --save``: the same machine read back, and nothing that identifies it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from nearfar.cli.app import main
from nearfar.errors import MachineError
from nearfar.machine import saving
from nearfar.machine.doctor import examine
from nearfar.machine.root import Root
from nearfar.machine.topology import machine_from, this_machine

MACHINES = Path(__file__).parent / "fixtures" / "machines"
NAMES = sorted(folder.name for folder in MACHINES.iterdir() if folder.is_dir())
SECRET = "s3cret-payroll"


def save(machine: Path, into: Path) -> Path:
    assert main(["topo", "--from", str(machine), "--save", str(into)]) == 0
    return into


def content(directory: Path) -> str:
    """Names and content of everything in a directory, links included."""
    found = [str(path.relative_to(directory)) for path in directory.rglob("*")]
    found += [str(path.readlink()) for path in directory.rglob("*") if path.is_symlink()]
    files = [path for path in directory.rglob("*") if path.is_file() and not path.is_symlink()]
    return "\n".join([*found, *(path.read_bytes().decode(errors="replace") for path in files)])


@pytest.mark.parametrize("name", NAMES)
def test_saved_machine_is_equal(name: str, tmp_path: Path) -> None:
    again = save(MACHINES / name, tmp_path / "saved")
    assert machine_from(again) == machine_from(MACHINES / name)
    twice = save(again, tmp_path / "twice")
    assert content(twice) == content(again)


@pytest.mark.parametrize("name", NAMES)
def test_doctor_finds_the_same_except_limits_of_a_control_group(name: str, tmp_path: Path) -> None:
    again = save(MACHINES / name, tmp_path / "saved")
    before = examine(machine_from(MACHINES / name), Root(MACHINES / name))
    after = examine(machine_from(again), Root(again))
    different = [b.check for b, a in zip(before, after, strict=True) if a != b]
    assert set(different) <= {"memory limit", "processor quota", "swap"}


def test_this_machine_is_saved(tmp_path: Path) -> None:
    assert main(["topo", "--save", str(tmp_path / "saved")]) == 0
    here, saved = this_machine(), machine_from(tmp_path / "saved")
    assert saved.id == here.id
    assert (saved.nodes, saved.caches, saved.cpus) == (here.nodes, here.caches, here.cpus)
    assert saved.virtual_machine == here.virtual_machine
    specs = [tier.spec for tier in here.tiers if not tier.spec.startswith(("file:", "fsdax:"))]
    assert [t.spec for t in saved.tiers if not t.spec.startswith("fsdax:")] == specs
    host = os.uname().nodename
    assert len(host) < 4 or host not in content(tmp_path / "saved")


def append(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as opened:
        opened.write(text)


def with_secrets(folder: Path) -> Path:
    """A machine whose files have a secret wherever a system keeps names and numbers of its own."""
    machine = Path(shutil.copytree(MACHINES / "optane-appdirect", folder, symlinks=True))
    for name in ("product_serial", "product_uuid", "board_serial", "sys_vendor", "product_name"):
        append(machine / f"sys/class/dmi/id/{name}", f"{SECRET}\n")
    for name in ("proc/cmdline", "proc/sys/kernel/hostname", "proc/net/arp", "etc/hostname"):
        append(machine / name, f"{SECRET}\n")
    append(machine / "proc/cpuinfo", f"\nSerial\t: {SECRET}\nflags: {SECRET}\n")
    append(machine / "proc/meminfo", f"{SECRET}: 1 kB\n")
    append(machine / "proc/stat", f"cpu  1 2 3 4 5 6 7 8\n{SECRET}\n")
    append(machine / "proc/self/mounts", f"{SECRET}:/x /srv/{SECRET} nfs rw,user={SECRET} 0 0\n")
    append(
        machine / "proc/swaps",
        f"Filename Type Size Used Priority\n/srv/{SECRET}/swap file 1024 0 -2\n",
    )
    append(machine / "proc/self/cgroup", f"0::/user.slice/{SECRET}\n")
    for region in machine.glob("sys/devices/**/region0"):
        append(region / "uevent", f"\nSERIAL={SECRET}\n")
        append(region / "namespace0.0/uuid", SECRET)
        append(region / "namespace0.0/alt_name", SECRET)
    mounts = machine / "proc/self/mounts"
    mounts.write_text(mounts.read_text().replace("/mnt/pmem0", f"/srv/{SECRET}"))
    xml = (machine / "hwloc.xml").read_text()
    names = "".join(
        f'<info name="{name}" value="{SECRET}"/>'
        for name in ("HostName", "DMIProductSerial", "DMIBoardUUID", "LinuxCgroup", "Address")
    )
    xml = xml.replace("<info name", names + "<info name", 1).replace(
        'value="5.15.0"', f'value="5.15.0-{SECRET}"'
    )
    (machine / "hwloc.xml").write_text(
        xml.replace("</topology>", f'<userdata name="{SECRET}" length="0"/></topology>')
    )
    return machine


def test_no_secret_is_saved(tmp_path: Path) -> None:
    machine = with_secrets(tmp_path / "machine")
    assert SECRET in machine_from(machine).model_dump_json()
    again = save(machine, tmp_path / "saved")
    assert SECRET not in content(again)
    assert machine_from(again) == machine_from(MACHINES / "optane-appdirect")


def test_tables_of_the_firmware_are_saved_as_they_are(tmp_path: Path) -> None:
    machine = Path(shutil.copytree(MACHINES / "two-sockets", tmp_path / "m", symlinks=True))
    table = b"HMAT\x00\xff\n"
    for name in ("HMAT", "MSDM"):
        append(machine / "sys/firmware/acpi/tables" / name, "")
        (machine / "sys/firmware/acpi/tables" / name).write_bytes(table)
    tables = save(machine, tmp_path / "saved") / "sys/firmware/acpi/tables"
    assert [(path.name, path.read_bytes()) for path in tables.iterdir()] == [("HMAT", table)]


def test_unreadable_files_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    machine = Path(shutil.copytree(MACHINES / "two-sockets", tmp_path / "m", symlinks=True))
    (machine / "sys/firmware/acpi/tables/HMAT").mkdir(parents=True)
    save(machine, tmp_path / "saved")
    assert "Not saved:\n  /sys/firmware/acpi/tables/HMAT: Is a directory" in capsys.readouterr().out


@pytest.mark.parametrize("taken", ["directory", "file", "missing parent"])
def test_refused_directories(
    taken: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    into = tmp_path / "saved"
    if taken == "directory":
        append(into / "kept", "as it was")
    elif taken == "file":
        append(into, "as it was")
    else:
        into = tmp_path / "missing" / "saved"
    before = content(tmp_path)
    code = main(["topo", "--from", str(MACHINES / "two-sockets"), "--save", str(into)])
    assert code == (3 if taken == "missing parent" else 2)
    printed = capsys.readouterr()
    assert "next: name a new or empty directory after --save" in printed.err
    assert (printed.out, content(tmp_path)) == ("", before)


@pytest.mark.parametrize("was_there", [True, False])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_nothing_is_left_after_an_error(
    error: BaseException, was_there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    into = tmp_path / "saved"
    if was_there:
        into.mkdir()

    def fail(_link: Path, _target: object) -> None:
        raise error

    machine = machine_from(MACHINES / "cxl-expander")
    saved = saving.collect(Root(MACHINES / "cxl-expander"), machine)
    monkeypatch.setattr(Path, "symlink_to", fail)
    with pytest.raises(MachineError if isinstance(error, OSError) else KeyboardInterrupt):
        saving.write(saved, into)
    assert into.exists() == was_there
    assert not was_there or not any(into.iterdir())
