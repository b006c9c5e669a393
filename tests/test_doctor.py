"""Doctor's checks against trees that a test writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from nearfar.machine.doctor import examine
from nearfar.machine.model import Machine
from nearfar.machine.root import Root
from nearfar.machine.tier_claims import DEMOTION
from nearfar.machine.topology import machine_from
from nearfar.records.run import Finding

MACHINES = Path(__file__).parent / "fixtures" / "machines"


@pytest.fixture(scope="module")
def machine() -> Machine:
    return machine_from(MACHINES / "two-sockets")


def checked(machine: Machine, root: Path) -> dict[str, Finding]:
    return {finding.check: finding for finding in examine(machine, Root(root))}


def write(root: Path, name: str, text: str) -> None:
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text + "\n")


THP = "sys/kernel/mm/transparent_hugepage/enabled"
NODES = "proc/sys/kernel/numa_balancing"
CLOCK = "sys/devices/system/clocksource/clocksource0/current_clocksource"
GOVERNOR = "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
PSTATE = "sys/devices/system/cpu/intel_pstate/no_turbo"
BOOST = "sys/devices/system/cpu/cpufreq/boost"
SWAPS = "Filename Type Size Used Priority\n"


@pytest.mark.parametrize(
    ("check", "file", "text", "level", "found"),
    [
        ("frequency governor", GOVERNOR, "performance", "ok", "performance"),
        ("frequency governor", GOVERNOR, "schedutil", "warning", "schedutil"),
        ("turbo", PSTATE, "1", "ok", "off"),
        ("turbo", PSTATE, "0", "note", "on"),
        ("turbo", BOOST, "0", "ok", "off"),
        ("turbo", BOOST, "1", "note", "on"),
        ("NUMA balancing", NODES, "0", "ok", "off"),
        ("NUMA balancing", NODES, "1", "warning", "on"),
        ("NUMA balancing", NODES, "2", "warning", "tiering"),
        ("demotion", DEMOTION, "false", "ok", "off"),
        ("demotion", DEMOTION, "true", "note", "on"),
        ("transparent huge pages", THP, "always [madvise] never", "ok", "madvise"),
        ("transparent huge pages", THP, "[always] madvise never", "note", "always"),
        ("transparent huge pages", THP, "always madvise [never]", "warning", "never"),
        ("swap", "proc/swaps", SWAPS, "ok", "none"),
        ("swap", "proc/swaps", SWAPS + "/swap file 1024 0 -2", "note", "empty"),
        ("swap", "proc/swaps", SWAPS + "/swap file 1024 512 -2", "warning", "512 KiB"),
        ("clock source", CLOCK, "tsc", "ok", "tsc"),
        ("clock source", CLOCK, "hpet", "warning", "hpet"),
        ("load", "proc/loadavg", "0.10 0.20 0.30 1/100 1", "ok", "0.10"),
        ("load", "proc/loadavg", "1.50 0.20 0.30 1/100 1", "warning", "1.50"),
        ("steal time", "proc/stat", "cpu 90 0 5 900 3 1 1 0 0 0", "ok", "0.00%"),
        ("steal time", "proc/stat", "cpu 90 0 5 900 3 1 1 90 0 0", "warning", "8.26%"),
        ("hardware counters", "proc/sys/kernel/perf_event_paranoid", "2", "ok", "= 2"),
        ("hardware counters", "proc/sys/kernel/perf_event_paranoid", "4", "note", "= 4"),
    ],
)
def test_a_setting_and_its_verdict(
    machine: Machine, tmp_path: Path, check: str, file: str, text: str, level: str, found: str
) -> None:
    write(tmp_path, file, text)
    finding = checked(machine, tmp_path)[check]
    assert (finding.level, found in finding.found) == (level, True), finding
    if level == "warning":
        assert finding.why
        assert finding.fix


def test_nothing_to_read_is_unknown_not_ok(machine: Machine, tmp_path: Path) -> None:
    findings = checked(machine, tmp_path)
    blind = {name for name, finding in findings.items() if finding.level == "unknown"}
    assert blind == {
        "frequency governor",
        "turbo",
        "prefetchers",
        "clock source",
        "NUMA balancing",
        "demotion",
        "transparent huge pages",
        "swap",
        "memory limit",
        "processor quota",
        "hardware counters",
        "load",
        "steal time",
    }
    assert findings["swap"].found == "/proc/swaps is missing"


def test_withheld_files_say_so(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path, *_: object, **__: object) -> str:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "read_text", refuse)
    monkeypatch.setattr(Path, "open", refuse)
    findings = checked(machine, tmp_path)
    assert findings["swap"].level == "unknown"
    assert findings["swap"].found == "no permission to read /proc/swaps"
    assert findings["prefetchers"].level == "unknown"
    assert "Permission denied" in findings["prefetchers"].found


def test_garbage_is_unknown(machine: Machine, tmp_path: Path) -> None:
    for name in ("proc/loadavg", "proc/stat", "proc/swaps", "proc/self/cgroup", PSTATE):
        write(tmp_path, name, "\x00?")
    findings = checked(machine, tmp_path)
    assert {findings[name].level for name in ("load", "steal time", "turbo")} == {"unknown"}


def test_prefetcher_switches(machine: Machine, tmp_path: Path) -> None:
    file = tmp_path / "dev/cpu/0/msr"
    file.parent.mkdir(parents=True)
    file.write_bytes(bytes(0x1A4) + (0).to_bytes(8, "little"))
    assert checked(machine, tmp_path)["prefetchers"].level == "ok"
    file.write_bytes(bytes(0x1A4) + (0b1011).to_bytes(8, "little"))
    assert checked(machine, tmp_path)["prefetchers"].found == "3 of four switched off"


@pytest.mark.parametrize(
    ("groups", "files"),
    [
        (
            "0::/jobs/mine",
            {
                "sys/fs/cgroup/jobs/memory.max": str(2 << 30),
                "sys/fs/cgroup/jobs/mine/memory.max": "max",
                "sys/fs/cgroup/jobs/mine/cpu.max": "150000 100000",
            },
        ),
        (
            "4:memory:/box\n2:cpu,cpuacct:/box",
            {
                "sys/fs/cgroup/memory/box/memory.limit_in_bytes": str(2 << 30),
                "sys/fs/cgroup/memory/memory.limit_in_bytes": str(2**63 - 4096),
                "sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us": "150000",
                "sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us": "100000",
            },
        ),
    ],
    ids=["version 2", "version 1"],
)
def test_control_group_limits(
    machine: Machine, tmp_path: Path, groups: str, files: dict[str, str]
) -> None:
    write(tmp_path, "proc/self/cgroup", groups)
    for name, text in files.items():
        write(tmp_path, name, text)
    findings = checked(machine, tmp_path)
    assert findings["memory limit"].found == "2 GiB for this control group"
    assert findings["processor quota"].level == "warning"
    assert "1.5 processors" in findings["processor quota"].found


def test_no_control_group_limit(machine: Machine, tmp_path: Path) -> None:
    write(tmp_path, "proc/self/cgroup", "0::/")
    write(tmp_path, "sys/fs/cgroup/cpu.max", "max 100000")
    findings = checked(machine, tmp_path)
    assert findings["memory limit"].level == findings["processor quota"].level == "ok"


def test_reserved_huge_pages(machine: Machine, tmp_path: Path) -> None:
    write(tmp_path, "sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "512")
    assert checked(machine, tmp_path)["huge pages"].found == "512 of 2 MiB free"


def test_withheld_processors(machine: Machine, tmp_path: Path) -> None:
    fewer = machine.model_copy(deep=True)
    for cpu in fewer.cpus[2:]:
        cpu.usable = False
    assert checked(fewer, tmp_path)["usable processors"].found == "2 of 8"


@pytest.mark.parametrize(
    ("name", "check", "level", "found"),
    [
        ("optane-appdirect", "persistent memory", "ok", "real"),
        ("memmap-pmem", "persistent memory", "note", "emulated in DRAM"),
        ("two-sockets", "persistent memory", "note", "none"),
        ("optane-memory-mode", "memory mode", "warning", "memory-side cache"),
        ("memmap-pmem", "virtual machine", "note", "QEMU"),
        ("two-sockets", "virtual machine", "ok", "none"),
        ("two-sockets", "hyper-threads", "note", "8 usable processors on 4 cores"),
        ("cxl-expander", "hyper-threads", "ok", "4 usable"),
        ("cxl-expander", "CXL health", "note", "1 CXL"),
        ("optane-appdirect", "namespaces", "ok", "none unused"),
    ],
)
def test_findings_of_described_machines(name: str, check: str, level: str, found: str) -> None:
    finding = checked(machine_from(MACHINES / name), MACHINES / name)[check]
    assert (finding.level, found in finding.found) == (level, True), finding


def test_namespace_that_is_not_mounted() -> None:
    described = machine_from(MACHINES / "optane-appdirect")
    described.pmem_regions[0].namespaces[0].mount = None
    finding = checked(described, MACHINES / "optane-appdirect")["namespaces"]
    assert finding.level == "warning"
    assert finding.found == "pmem0 is not mounted"
    assert "/dev/pmem0" in finding.fix


def tool(folder: Path, name: str, script: str) -> None:
    file = folder / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


@pytest.mark.parametrize(
    ("script", "level", "found"),
    [
        ("""echo '[{"dev":"nmem0","health":{"health_state":"ok"}}]'""", "ok", "no problem"),
        ("""echo '[{"dev":"nmem1","health":{"health_state":"critical"}}]'""", "warning", "nmem1"),
        ("exit 0", "ok", "no problem"),
        ("echo oops", "unknown", "failed"),
        (None, "unknown", "ndctl is not installed"),
    ],
)
def test_health_as_ndctl_reports_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, level: str, found: str
) -> None:
    if script:
        tool(tmp_path, "ndctl", script)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin" if script else str(tmp_path))
    described = machine_from(MACHINES / "optane-appdirect")
    finding = next(f for f in examine(described) if f.check == "NVDIMM health")
    assert (finding.level, found in finding.found) == (level, True), finding


def test_room_in_the_tiers() -> None:
    described = machine_from(MACHINES / "two-sockets")
    for tier in described.tiers:
        tier.free_bytes = 2 << 30
    assert next(f for f in examine(described) if f.check == "room in the tiers").level == "ok"
    described.tiers[0].free_bytes = 100 << 20
    finding = next(f for f in examine(described) if f.check == "room in the tiers")
    assert (finding.level, "dram 100 MiB" in finding.found) == ("warning", True)
