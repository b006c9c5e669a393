"""``nearfar profile list``: shipped device profiles and hosts, and hosts that were measured."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import nearfar
from conftest import RunNearfar
from nearfar.profiles import host_names, load_profile, profile_names


def test_every_shipped_profile_and_host_is_listed_with_its_figures() -> None:
    rows = {row.name: row for row in nearfar.list_profiles()}
    assert {*profile_names(), *host_names()} - {"this"} <= rows.keys()
    assert rows["cxl-asic"].read_latency_ns == load_profile("cxl-asic").scalar("read_latency_ns")
    assert rows["cxl-asic"].bandwidth_bytes_per_s == 17.8e9
    assert {row.kind for row in rows.values()} == {"device", "host"}
    assert all(Path(row.file).is_file() for row in rows.values())


def test_hosts_that_were_measured_are_listed_and_damaged_ones_are_named(
    run_nearfar: RunNearfar, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = tmp_path / "data" / "nearfar" / "hosts"
    hosts.mkdir(parents=True)
    (hosts / "0123456789ab.toml").write_text("schema_version = 1\nkind = 'ho")
    environment = {**os.environ, "XDG_DATA_HOME": str(tmp_path / "data")}
    done = run_nearfar("profile", "list", "--json", "-", env=environment)
    assert done.code == 0, done.stderr
    rows = json.loads(done.stdout)["profiles"]
    assert [row["title"] for row in rows if row["origin"] == "stored"] == ["damaged"]


def test_the_table_names_profiles_as_other_verbs_take_them(run_nearfar: RunNearfar) -> None:
    done = run_nearfar("profile", "list")
    assert done.code == 0, done.stderr
    assert "optane-100" in done.stdout
    assert "Hosts (--host)" in done.stdout
