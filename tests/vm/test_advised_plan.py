"""A plan of `nearfar advise` is run on two memory nodes, and its sites live where it says."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from conftest import RunNearfar
from hmalloc_build import compile_c
from small_host import write_small_host
from vm.machine import Machine

pytestmark = [
    pytest.mark.vm,
    pytest.mark.skipif(shutil.which("qemu-x86_64") is None, reason="qemu-x86_64 is not installed"),
]


def test_a_site_that_does_not_fit_is_interleaved(
    machine: Machine, tmp_path: Path, run_nearfar: RunNearfar
) -> None:
    """Advice proposes five eighths near; the kernel's pages are there."""
    program = compile_c(machine.share, "chased_table", flags=["-fno-omit-frame-pointer"])
    host = write_small_host(tmp_path / "small.toml")
    flags = ["--near", "ddr4", "--far", "cxl-asic", "--host", str(host), "--json", "-"]
    done = run_nearfar("advise", *flags, "--near-budget", "10MiB", "--", str(program), "8000000")
    assert done.code == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["fractions"]["applied"]
    plan = tmp_path / found["plan"]
    assert "tier near5far3 numa:0+1,weights=5:3" in plan.read_text()
    shutil.copy(plan, machine.share / "fractions.plan")
    ran = machine.run(
        "./nearfar run --plan /mnt/share/fractions.plan --tier far=numa:1 --check --no-traffic "
        "--json /tmp/check.json -- /mnt/share/chased_table 1000"
    )
    print(ran)
    assert ran.code == 0, ran.stderr
    near, far = (int(number) for number in ran.stdout.split())
    assert near + far == 4096
    assert near == pytest.approx(5 / 8 * 4096, rel=0.03)
    check = json.loads(machine.run("cat /tmp/check.json").ok())["check"]
    assert check["kept"]
    assert {rule["tier"] for rule in check["rules"]} >= {"near5far3"}


def test_sites_live_where_advise_put_them(
    machine: Machine, tmp_path: Path, run_nearfar: RunNearfar
) -> None:
    program = compile_c(machine.share, "three_sites", flags=["-fno-omit-frame-pointer"])
    host = write_small_host(tmp_path / "small.toml")
    done = run_nearfar(
        "advise",
        "--emulate",
        "--near",
        "ddr4",
        "--far",
        "cxl-asic",
        "--host",
        str(host),
        "--near-budget",
        "2MiB",
        "--json",
        "-",
        "--",
        str(program),
        "20000",
        "100000",
    )
    assert done.code == 0, done.stderr
    found = json.loads(done.stdout)
    shutil.copy(tmp_path / found["plan"], machine.share / "advised.plan")
    ran = machine.run(
        "./nearfar run --plan /mnt/share/advised.plan --tier near=numa:0 --tier far=numa:1 --check "
        "--json /tmp/check.json -- /mnt/share/three_sites 22000 30000"
    )
    print(ran)
    assert ran.code == 0, ran.stderr
    check = json.loads(machine.run("cat /tmp/check.json").ok())["check"]
    assert check["kept"]
    rules = {rule["tier"]: rule for rule in check["rules"] if rule["pages"] >= 10}  # looked at
    assert set(rules) == {"near", "far"}
    assert all(rule["misplaced_pages"] == 0 for rule in check["rules"])
    assert check["matched_traffic_share"] >= 0.95
    assert rules["near"]["reads"] > rules["far"]["reads"]
