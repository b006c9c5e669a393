"""Machines kept as fixtures: the right tiers, and the right verdict on their persistence."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from nearfar import _native
from nearfar.errors import BadInputError
from nearfar.machine.model import Machine, Tier
from nearfar.machine.topology import machine_from, this_machine
from nearfar.records.figures import Origin
from nearfar.units import GIB, MIB

MACHINES = Path(__file__).parent / "fixtures" / "machines"


def tiers(machine: Machine) -> dict[str, Tier]:
    return {tier.spec: tier for tier in machine.tiers}


def aliases(machine: Machine) -> dict[str, str]:
    return {tier.alias: tier.spec for tier in machine.tiers if tier.alias}


def changed(tmp_path: Path, name: str) -> Path:
    """A copy of a fixture that a test may damage."""
    return Path(shutil.copytree(MACHINES / name, tmp_path / name, symlinks=True))


def test_two_sockets() -> None:
    machine = machine_from(MACHINES / "two-sockets")
    assert machine.processor == "Intel(R) Xeon(R) Gold 5218R CPU @ 2.10GHz"
    assert machine.kernel == "Linux 5.15.0"
    assert machine.virtual_machine is None
    assert list(tiers(machine)) == ["dram", "numa:1", "shm:"]
    assert aliases(machine) == {"near": "dram", "far": "numa:1"}
    assert tiers(machine)["dram"].distance == 10
    assert tiers(machine)["numa:1"].distance == 21
    assert tiers(machine)["numa:1"].capacity_bytes == 96 * GIB
    assert tiers(machine)["dram"].persistence == "none"
    assert tiers(machine)["shm:"].persistence == "emulated"
    assert tiers(machine)["shm:"].capacity_bytes == 96 * GIB
    assert [node.cpus for node in machine.nodes] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert {cpu.id: cpu.node for cpu in machine.cpus}[5] == 1


def test_processors_of_a_machine_with_siblings() -> None:
    machine = machine_from(MACHINES / "two-sockets")
    assert machine.usable_cpus() == list(range(8))
    assert machine.one_cpu_per_core() == [0, 2, 4, 6]
    assert machine.cores_first() == [0, 2, 4, 6, 1, 3, 5, 7]
    assert machine.last_cache_bytes() == 27.5 * MIB
    for cpu in machine.cpus:
        cpu.usable = cpu.id in {1, 2, 3}
    assert machine.usable_cpus() == [1, 2, 3]
    assert machine.one_cpu_per_core() == [1, 2]


def test_caches_of_a_described_machine() -> None:
    caches = machine_from(MACHINES / "two-sockets").caches
    first = {(c.level, c.type): c for c in reversed(caches)}
    assert (first[1, "data"].size_bytes, first[1, "data"].ways) == (32 << 10, 8)
    assert (first[2, "unified"].size_bytes, first[2, "unified"].ways) == (MIB, 16)
    assert (first[3, "unified"].ways, first[3, "unified"].cpus) == (11, [0, 1, 2, 3])


def test_cxl_expander_is_far_memory_with_claimed_figures() -> None:
    machine = machine_from(MACHINES / "cxl-expander")
    expander = tiers(machine)["numa:1"]
    assert aliases(machine) == {"near": "dram", "far": "numa:1"}
    assert machine.nodes[1].cpuless
    assert machine.nodes[1].subtype == "CXL"
    assert (expander.dax, expander.persistence, expander.distance) == ("kmem", "none", 14)
    assert "kmem" in expander.persistence_reason
    assert expander.read_latency_ns == 250
    assert expander.read_bandwidth_bytes_per_s == 17.8e9
    assert expander.write_bandwidth_bytes_per_s == 27.2e9
    assert expander.provenance["read_latency_ns"].origin is Origin.CLAIMED
    assert "firmware claims" in expander.provenance["read_latency_ns"].note
    assert [(d.name, d.backing, d.state) for d in machine.dax_devices] == [
        ("dax0.0", "cxl", "kmem")
    ]
    assert [(d.name, d.volatile_bytes) for d in machine.cxl_devices] == [("mem0", 96 * GIB)]


def test_claims_for_processors_come_before_those_for_any_initiator(tmp_path: Path) -> None:
    copy = changed(tmp_path, "cxl-expander")
    nearest = copy / "sys/devices/system/node/node1/access1/initiators"
    nearest.mkdir(parents=True)
    (nearest / "read_latency").write_text("271\n")
    node = machine_from(copy).nodes[1]
    assert (node.read_latency_ns, node.write_latency_ns) == (271, 250)


def test_app_direct_is_really_persistent() -> None:
    machine = machine_from(MACHINES / "optane-appdirect")
    found = tiers(machine)
    for spec, node in (("fsdax:/mnt/pmem0", 0), ("devdax:/dev/dax1.0", 1)):
        assert found[spec].persistence == "real"
        assert found[spec].flushes_needed is True
        assert "NFIT" in found[spec].persistence_reason
        assert found[spec].node == node
        assert found[spec].distance is None  # its own node is not online: the kernel reports none
    assert aliases(machine)["far"] == "fsdax:/mnt/pmem0"
    assert machine.memory_mode is None
    modes = [(s.mode, s.device, s.mount) for r in machine.pmem_regions for s in r.namespaces]
    assert modes == [("fsdax", "pmem0", "/mnt/pmem0"), ("devdax", None, None)]


@pytest.mark.parametrize(
    ("file", "text", "persistence", "flushes", "reason"),
    [
        ("region0/persistence_domain", "cpu_cache", "real", False, "eADR"),
        ("region0/persistence_domain", "", "real", True, "does not report"),
        ("region0/uevent", "DEVTYPE=nd_volatile", "none", None, "volatile"),
        ("provider", "CXL", "real", True, "CXL"),
        ("provider", "virtio-pmem", "claimed", True, "virtio-pmem"),
        ("provider", "e820", "emulated", True, "memmap="),
    ],
)
def test_the_source_of_a_claim_decides(
    tmp_path: Path, file: str, text: str, persistence: str, flushes: bool | None, reason: str
) -> None:
    copy = changed(tmp_path, "optane-appdirect")
    bus = (copy / "sys/bus/nd/devices/ndbus0").resolve()
    (bus / file).write_text(text + "\n")
    tier = tiers(machine_from(copy))["fsdax:/mnt/pmem0"]
    assert (tier.persistence, tier.flushes_needed) == (persistence, flushes)
    assert reason in tier.persistence_reason


def test_tiers_of_a_hypervisor_are_only_claimed(tmp_path: Path) -> None:
    copy = changed(tmp_path, "optane-appdirect")
    (copy / "sys/class/dmi/id").mkdir(parents=True)
    (copy / "sys/class/dmi/id/sys_vendor").write_text("QEMU\n")
    machine = machine_from(copy)
    assert machine.virtual_machine == "QEMU"
    tier = tiers(machine)["devdax:/dev/dax1.0"]
    assert tier.persistence == "claimed"
    assert "as claimed by the host" in tier.persistence_reason


def test_without_dax_a_mount_is_not_a_tier(tmp_path: Path) -> None:
    copy = changed(tmp_path, "optane-appdirect")
    mounts = copy / "proc/self/mounts"
    mounts.write_text(mounts.read_text().replace(",dax=always", ",dax=never"))
    machine = machine_from(copy)
    assert "fsdax:/mnt/pmem0" not in tiers(machine)
    assert machine.pmem_regions[0].namespaces[0].mount == "/mnt/pmem0"
    assert not machine.pmem_regions[0].namespaces[0].dax


def test_memory_mode_is_recognised() -> None:
    machine = machine_from(MACHINES / "optane-memory-mode")
    assert machine.memory_mode is not None
    assert [(c.node, c.size_bytes, c.ways) for c in machine.memory_mode.caches] == [
        (0, 96 * GIB, 1),
        (1, 96 * GIB, 1),
    ]
    assert {t.persistence for t in machine.tiers} == {"none", "emulated"}
    assert machine.last_cache_bytes() == 27.5 * MIB  # near memory is not a CPU cache


def test_memory_mode_is_suspected_of_dimms_without_regions(tmp_path: Path) -> None:
    copy = changed(tmp_path, "optane-appdirect")
    for entry in (copy / "sys/bus/nd/devices").glob("region*"):
        entry.unlink()
    machine = machine_from(copy)
    assert machine.memory_mode is not None
    assert "4 NVDIMMs" in machine.memory_mode.evidence


def test_memmap_region_is_dram() -> None:
    machine = machine_from(MACHINES / "memmap-pmem")
    tier = tiers(machine)["fsdax:/mnt/pmem0"]
    assert machine.virtual_machine == "QEMU"
    assert tier.persistence == "emulated"
    assert "DRAM" in tier.persistence_reason
    assert aliases(machine) == {"near": "dram", "far": "fsdax:/mnt/pmem0"}
    assert "hypervisor" in machine.provenance["caches"].note


def test_devdax_of_volatile_cxl_memory_promises_nothing(tmp_path: Path) -> None:
    copy = changed(tmp_path, "cxl-expander")
    device = (copy / "sys/bus/dax/devices/dax0.0").resolve()
    (device / "uevent").write_text("DRIVER=device_dax\n")
    tier = tiers(machine_from(copy))["devdax:/dev/dax0.0"]
    assert (tier.persistence, tier.capacity_bytes) == ("none", 96 * GIB)


@pytest.mark.parametrize("name", sorted(p.name for p in MACHINES.iterdir() if p.is_dir()))
def test_every_proposal_can_be_given_to_tier(name: str) -> None:
    for tier in machine_from(MACHINES / name).tiers:
        _native.parse_tier(tier.spec)
        assert tier.persistence_reason


def test_id_depends_on_hardware_alone(tmp_path: Path) -> None:
    original = machine_from(MACHINES / "two-sockets").id
    copy = changed(tmp_path, "two-sockets")
    xml = (copy / "hwloc.xml").read_text()
    (copy / "hwloc.xml").write_text(xml.replace("5.15.0", "6.9.9"))
    (copy / "proc/meminfo").write_text(f"MemTotal: {190 << 20} kB\n")
    assert machine_from(copy).id == original
    (copy / "hwloc.xml").write_text(xml.replace("5218R", "6130"))
    assert machine_from(copy).id != original


def test_missing_parts_are_named(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="nowhere"):
        machine_from(tmp_path / "nowhere")
    copy = changed(tmp_path, "two-sockets")
    shutil.rmtree(copy / "sys")
    with pytest.raises(BadInputError, match=r"two-sockets/sys"):
        machine_from(copy)
    (copy / "hwloc.xml").unlink()
    with pytest.raises(BadInputError, match=r"hwloc\.xml"):
        machine_from(copy)


def test_damaged_processor_list_is_named(tmp_path: Path) -> None:
    copy = changed(tmp_path, "two-sockets")
    (copy / "sys/devices/system/node/node1/cpulist").write_text("4-\n")
    with pytest.raises(BadInputError, match=r"node1/cpulist is damaged"):
        machine_from(copy)


def test_this_machine_agrees_with_the_kernel() -> None:
    import os

    machine = this_machine()
    assert machine.usable_cpus() == sorted(os.sched_getaffinity(0))
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert machine.memory_bytes == total
    assert machine.tiers[0].spec == "dram"
    assert machine.tiers[0].alias == "near"
    assert machine.id == this_machine().id
    assert Machine.model_validate_json(machine.model_dump_json()) == machine
    here = tiers(machine).get("file:.")
    if here is None:
        pytest.skip("no mount is seen that holds this folder, as in a chroot: no file:. is listed")
    assert here.free_bytes is not None
    assert here.capacity_bytes is not None
    assert 0 < here.free_bytes <= here.capacity_bytes


def test_memory_without_processors_is_farther_than_persistent_memory(tmp_path: Path) -> None:
    copy = changed(tmp_path, "optane-appdirect")
    (copy / "sys/devices/system/node/node1/cpulist").write_text("\n")
    assert aliases(machine_from(copy))["far"] == "numa:1"


def test_dax_seeds_are_no_devices(tmp_path: Path) -> None:
    copy = changed(tmp_path, "cxl-expander")
    seed = copy / "sys/bus/dax/devices/dax0.1"
    seed.mkdir()
    (seed / "size").write_text("0\n")
    assert [d.name for d in machine_from(copy).dax_devices] == ["dax0.0"]
