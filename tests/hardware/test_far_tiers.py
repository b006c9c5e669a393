"""Tiers on DAX devices and on nodes without CPUs: measured, and programs placed on them.

Contents are verified; no test asserts a measured time. Nothing overwrites data: a DAX device
without a file system is used only if ``NEARFAR_TEST_DEVDAX`` names it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from conftest import RunNearfar
from nearfar.machine.model import Machine
from placed_blocks import BLOCKS, BYTES, SCRIPT, plan

DEVDAX = "NEARFAR_TEST_DEVDAX"


@pytest.fixture(params=["fsdax", "devdax", "numa"])
def tier(request: pytest.FixtureRequest, here: Machine) -> str:
    """The first tier of a kind."""
    if request.param == "numa":
        return far_node(here)
    found = [tier.spec for tier in here.tiers if tier.dax == request.param]
    if not found:
        pytest.skip(f"no {request.param} tier: nearfar topo lists none")
    if request.param == "fsdax":
        return found[0]
    device = os.environ.get(DEVDAX)
    if device is None:
        pytest.skip(
            f"data on {found[0]} would be overwritten: set {DEVDAX}=/dev/daxX.Y to allow it"
        )
    assert f"devdax:{device}" in found, f"{DEVDAX}={device} is not one of {found}"
    return f"devdax:{device}"


def far_node(here: Machine) -> str:
    """The first node without CPUs, as a tier."""
    for node in here.nodes:
        if node.cpuless and node.size_bytes:
            return f"numa:{node.id}"
    pytest.skip("no node without CPUs: CXL memory may have to be given to the kernel (daxctl)")


def test_probe_measures_latency(tier: str, run_nearfar: RunNearfar) -> None:
    done = run_nearfar("probe", "--tier", tier, "--quick", "--time", "10", "--size", "64MiB")
    assert done.code == 0, done
    assert "Latency of a load" in done.stdout


def test_stream_holds_the_right_values(tier: str, run_nearfar: RunNearfar) -> None:
    done = run_nearfar(
        "bench", "stream", "--tier", tier, "--size", "16MiB", "--time", "5", "--threads", "2"
    )
    assert done.code == 0, done


def test_blocks_are_on_the_far_node(here: Machine, run_nearfar: RunNearfar, tmp_path: Path) -> None:
    (tmp_path / "p.plan").write_text(plan())
    tiers = ("--tier", "near=dram", "--tier", f"far={far_node(here)}")
    command = ("--", "python3", "-c", SCRIPT)
    done = run_nearfar(
        "run", "--plan", "p.plan", *tiers, "--check", "--no-traffic", "--json", "c.json", *command
    )
    assert done.code == 0, done
    blocks = json.loads((tmp_path / "c.json").read_text())["check"]["rules"][0]
    assert blocks["allocated_bytes"] >= BLOCKS * BYTES
    assert blocks["pages"] > BLOCKS
    assert blocks["misplaced_pages"] == 0


def test_topo_relates_cxl_devices_to_memory(here: Machine) -> None:
    if not here.cxl_devices:
        pytest.skip("no CXL memory device: /sys/bus/cxl/devices has no mem*")
    for device in here.cxl_devices:
        assert device.volatile_bytes + device.persistent_bytes > 0, device
    given = [dax for dax in here.dax_devices if dax.backing == "cxl" and dax.state == "kmem"]
    for dax in given:
        node = next(node for node in here.nodes if node.id == dax.target_node)
        assert (node.subtype, node.cpuless) == ("CXL", True)
