"""libhmalloc on two memory nodes, one of them without processors: pages lie where they should."""

from __future__ import annotations

import re

import pytest

from hmalloc_build import PRELOAD, compile_c
from vm.conftest import DEVICE, make_devdax, make_fsdax
from vm.machine import ROOT, Machine

pytestmark = pytest.mark.vm

PROGRAMS = ROOT / "build" / "editable" / "tests" / "vm" / "programs"
PROGRAM = PROGRAMS / "hm_nodes"
MIB = 1 << 20
PAGE = 4096


def placed(machine: Machine, settings: str) -> dict[str, list[str]]:
    reported = machine.run(f"{settings} {PROGRAM} {8 * MIB}").ok()
    print(reported)
    return {name: values for name, *values in (line.split() for line in reported.splitlines())}


def test_near_and_far_are_on_their_nodes(machine: Machine) -> None:
    found = placed(machine, "NEARFAR_HMALLOC_NEAR=numa:0 NEARFAR_HMALLOC_FAR=numa:1")
    assert found["near"] == [str(8 * MIB // PAGE), "0"]
    assert found["far"] == ["0", str(8 * MIB // PAGE)]
    assert found["variable"] == ["0", str(MIB // PAGE)]
    assert found["more"] == ["far"]


def test_far_is_the_node_without_processors_by_itself(machine: Machine) -> None:
    assert placed(machine, "")["far"] == ["0", str(8 * MIB // PAGE)]


def test_a_full_far_tier_fails_or_spills_as_configured(machine: Machine) -> None:
    few = "NEARFAR_HMALLOC_FAR=numa:1,capacity=32MiB"
    assert placed(machine, few)["more"] == ["ENOMEM"]
    assert placed(machine, f"{few},overflow=spill:near")["more"] == ["spilled"]


def test_a_whole_program_runs_on_the_far_node(machine: Machine) -> None:
    script = (
        "held = [bytes([n]) * 100_000 for n in range(200)]; "
        "lines = list(open('/proc/self/numa_maps')); "
        "print([line for line in lines if 'N1=' in line and 'N0=' not in line])"
    )
    reported = machine.run(f'./nearfar run --tier far=numa:1 -- python3 -c "{script}"').ok()
    on_far = sum(
        int(word[3:]) for word in reported.replace("\\n", " ").split() if word[:3] == "N1="
    )
    assert on_far * PAGE >= 20_000_000


def test_a_tier_migrates_between_nodes_and_back(machine: Machine) -> None:
    reported = machine.run(f"NEARFAR_HMALLOC_FAR=numa:1 {PROGRAMS / 'hm_migrate'} {8 * MIB}").ok()
    print(reported)
    pages = str(8 * MIB // PAGE)
    assert [line.split() for line in reported.splitlines()] == [
        ["made", "0", pages],
        ["near", pages, "0"],
        ["fresh", pages, "0"],
        ["far", "0", pages],
        ["absent", "EINVAL"],
        ["unmade", "ENODEV"],
        ["file", "EOPNOTSUPP"],
    ]


def test_weights_are_refused_by_a_kernel_without_them(machine: Machine) -> None:
    refused = machine.run(f"NEARFAR_HMALLOC_FAR=numa:0+1,weighted {PROGRAM} {MIB}")
    assert (refused.code, "weighted requires Linux 6.9" in refused.stderr) == (3, True), refused


@pytest.fixture(scope="module", params=["fsdax", "devdax"])
def dax(request: pytest.FixtureRequest, machine: Machine) -> str:
    if request.param == "fsdax":
        make_fsdax(machine)
        return "fsdax:/mnt/pmem,capacity=256MiB"
    make_devdax(machine)
    return f"devdax:{DEVICE}"


def test_a_heap_on_dax_does_all_that_malloc_does(machine: Machine, dax: str) -> None:
    program = compile_c(machine.share, "preload_cases").name
    settings = f"NEARFAR_HMALLOC_DEFAULT=far NEARFAR_HMALLOC_FAR={dax} LD_PRELOAD={PRELOAD}"
    reported = machine.run(f"{settings} /mnt/share/{program} libm.so.6").ok()
    assert re.findall(r"^(\w+)", reported, re.MULTILINE) == ["ok"] * 16, reported


def test_a_heap_on_dax_is_mapped_from_the_device(machine: Machine, dax: str) -> None:
    script = "held = bytearray(10**7); print(open('/proc/self/smaps').read())"
    reported = machine.run(f'./nearfar run --tier far={dax} -- python3 -c "{script}"').ok()
    where = DEVICE if dax.startswith("devdax") else "/mnt/pmem/"
    (area,) = [a for a in re.split(r"(?m)^(?=[0-9a-f]+-[0-9a-f]+ )", reported) if where in a[:200]]
    flags = re.findall(r"VmFlags: (.*)", area)[0].split()
    assert "sh" in flags
    assert ("sf" in flags) == dax.startswith("fsdax")  # MAP_SYNC; a device needs none


def test_a_child_has_its_own_copy_of_a_heap_on_dax(machine: Machine, dax: str) -> None:
    script = (
        "import os\n"
        "data = bytearray(b'p' * 100000)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    data[0] = ord('c')\n"
        "    os._exit(0 if data[1] == ord('p') else 1)\n"
        "print(os.waitpid(child, 0)[1], chr(data[0]))\n"
    )
    (machine.share / "forks.py").write_text(script)
    for policy in ("private", "copy"):
        run = f"./nearfar run --tier far={dax},fork={policy} -- python3 /mnt/share/forks.py"
        done = machine.run(run)
        if policy == "copy" and dax.startswith("devdax"):
            assert (done.code, "cannot be copied" in done.stderr) == (2, True), done
        else:
            assert done.ok() == "0 p\n"


def test_a_device_has_one_heap_at_a_time(machine: Machine) -> None:
    make_devdax(machine)
    settings = f"NEARFAR_HMALLOC_FAR=devdax:{DEVICE} LD_PRELOAD={PRELOAD}"
    hold = "import os, time; open('/tmp/holder', 'w').write(str(os.getpid())); time.sleep(300)"
    machine.run(f'({settings} python3 -c "{hold}") >/dev/null 2>&1 & disown').ok()
    machine.run("until [ -s /tmp/holder ]; do sleep 0.2; done").ok()
    refused = machine.run(f"{settings} /bin/true")  # not the shell's own
    machine.run("kill $(cat /tmp/holder)").ok()
    assert (refused.code, "is in use" in refused.stderr) == (3, True), refused


def test_strict_overcommit_makes_the_window_small(machine: Machine) -> None:
    program = compile_c(machine.share, "preload_cases").name
    machine.run("echo 2 > /proc/sys/vm/overcommit_memory").ok()
    try:
        reported = machine.run(f"LD_PRELOAD={PRELOAD} /mnt/share/{program} libm.so.6").ok()
    finally:
        machine.run("echo 0 > /proc/sys/vm/overcommit_memory").ok()
    assert re.findall(r"^(\w+)", reported, re.MULTILINE) == ["ok"] * 16, reported
