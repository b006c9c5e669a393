"""Counters of a region: by perf where a machine has them, by a model of its caches where not."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from conftest import RunNearfar
from nearfar import _native
from nearfar.measure import counters
from nearfar.records.counters import RegionCounters
from nearfar.report.html.sections import maps
from nearfar.store import read_run
from nearfar.workflows import counting

pytestmark = pytest.mark.skipif(not hasattr(_native, "MapBench"), reason="without libpmemobj")

FIXTURES = Path(__file__).parent / "fixtures" / "counters"


def test_readings_of_a_processor_become_fields_and_missing_ones_are_reported() -> None:
    """Totals that the Nicosia thesis counted for 10^6 gets, as its fits give them, in groups."""
    recorded = json.loads((FIXTURES / "thesis-million-gets.json").read_text())
    fields = {
        names[0]: field for group in counters.GROUPS for field, names in group
    }  # the first choice of each
    events = counters.Events((), fields, {})
    values, silent = events.read({k: tuple(v) for k, v in recorded.items()})
    assert values["llc_load_misses"] < values["llc_loads"] < values["instructions"]
    assert set(silent) == {"l3_stall_cycles"}
    reported = RegionCounters(source="perf", missing=silent, **values)  # type: ignore[arg-type]
    assert reported.l3_stall_cycles is None
    assert "turn" in reported.missing["l3_stall_cycles"]


def test_auto_counts_kernel_events_and_simulates_the_caches(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    sizes = [str(n) for n in (500, 1000, 2000, 4000)]
    flags = [word for n in sizes for word in ("-n", n)]
    done = run_nearfar(
        "bench",
        "map",
        "--op",
        "insert",
        *flags,
        "--counters",
        "auto",
        "--runs",
        "1",
        "--json",
        "-",
        "--quiet",
        "--out",
        str(tmp_path / "run"),
    )
    assert done.code == 0, done
    assert "Infinity" not in done.stdout  # counters of which all repeats are zero
    operations = [point["operations"] for point in json.loads(done.stdout)["sweep"]]
    reported = [point["counters"] for point in json.loads(done.stdout)["sweep"]]
    hardware = set(counters.available().fields.values())
    for one in reported:
        wanted = "measured" if "llc_loads" in hardware else "simulated"
        assert one["provenance"]["llc_loads"]["origin"] == wanted
        assert one["llc_load_misses"] <= one["llc_loads"]
        assert set(one) >= {"source", "llc_stores"}
        assert all(field in one for field in hardware)
    rows = list(csv.DictReader((tmp_path / "run" / "counters.csv").read_text().splitlines()))
    assert [float(row["operations"]) for row in rows] == [float(n) for n in sizes]
    assert "<svg" in (tmp_path / "run" / "correlation.svg").read_text()
    fitted = run_nearfar("fit", "counters", str(tmp_path / "run" / "counters.csv"), "--json", "-")
    assert fitted.code == 0, fitted
    record = read_run(tmp_path / "run")
    assert record.sections.map is not None
    assert record.sections.map.counters is not None
    heads, shown = maps.counters(record.sections.map)
    assert len(heads) == 2 + len(record.sections.map.sweep)
    loads = next(row for row in shown if row[0] == "llc_loads")
    assert float(loads[2]) == pytest.approx(reported[0]["llc_loads"] / operations[0], rel=1e-3)


def test_perf_is_refused_where_the_machine_counts_nothing(
    run_nearfar: RunNearfar,
) -> None:
    if "instructions" in counters.available().fields.values():
        pytest.skip("this machine has counters")
    run_nearfar("bench", "map", "-n", "100", "--counters", "perf", "--quiet").assert_refused(
        3, "this machine counts no hardware events"
    )


def test_a_table_has_the_counters_of_all_points() -> None:
    assert counting.table([]) == (["operations", "time_s"], [])
