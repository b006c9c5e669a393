"""``nearfar crash``: our structures are right, wrong programs are found out and named."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import RunNearfar
from crashing import document, needs_explorer
from nearfar.report.console import print_result
from nearfar.report.terminal.crash import exploration, replayed
from nearfar.verify.explorer import call_sites, explore
from nearfar.verify.findings import Exploration, Finding
from nearfar.verify.structures import ON_LIBPMEMOBJ, check

STRUCTURES = ("map", "list", "skip_list", "queue")


pytestmark = needs_explorer


@pytest.mark.parametrize(("structure", "n"), [*((name, 400) for name in STRUCTURES), ("move", 200)])
@pytest.mark.parametrize("platform", ["adr", "eadr"])
def test_our_structures_survive_every_image(structure: str, n: int, platform: str) -> None:
    result = explore("check", {"structure": structure, "n": n, "seed": 3, "platform": platform})
    assert (result.violations, result.states_left) == (0, 0)
    assert result.states > 200


def test_check_as_a_user_runs_it(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    done = run_nearfar("crash", "check", "--structure", "map", "-n", "200", "--json", "-")
    assert done.code == 0, done
    found = document(done)
    assert found["violations"] == found["states_left"] == 0
    assert found["states"] > 200
    assert found["states_per_s"] > 0
    assert found["findings"] == []
    assert list(tmp_path.iterdir()) == []


def test_a_budget_is_honest(run_nearfar: RunNearfar) -> None:
    done = run_nearfar("crash", "check", "--structure", "list", "--budget", "50", "--json", "-")
    found = document(done)
    assert (done.code, found["states"], found["verdict"]) == (3, 50, "inconclusive")
    assert found["states_left"] > 0
    assert 0 < found["stores_tried"] < found["stores"]


def test_images_beyond_all_numbers_are_still_a_number(run_nearfar: RunNearfar) -> None:
    done = run_nearfar(
        "crash", "check", "--structure", "map_rp", "-n", "4000", "--budget", "9", "--json", "-"
    )
    assert (done.code, document(done)["verdict"]) == (3, "inconclusive"), done
    assert 1e300 < document(done)["states_left"] < float("inf")


def mutant(structure: str, kind: str, site: str) -> Exploration:
    file, _, line = site.rpartition(":")
    asked = {"structure": structure, "n": 200, "seed": 1, "violations": 20, "budget": 60_000}
    return explore("check", {**asked, "suppress": f"{kind} {line} {file}"})


@pytest.mark.parametrize("structure", ON_LIBPMEMOBJ)
def test_structures_on_libpmemobj_survive_every_image(structure: str) -> None:
    n = 40 if structure == "map_rp" else 120  # buckets are split from 16 entries on, then joined
    result = check({"structure": structure, "n": n, "seed": 2, "confirm_every": 20})
    assert (result.violations, result.states_left) == (0, 0), result.findings
    assert result.states > 500
    assert result.confirmed == result.states // 20


def test_libpmemobj_opens_every_image(run_nearfar: RunNearfar) -> None:
    done = run_nearfar(
        "crash",
        "check",
        "--structure",
        "map_tx",
        "-n",
        "20",
        "--recovery",
        "library",
        "--budget",
        "100",
        "--json",
        "-",
    )
    found = document(done)
    assert (done.code, found["verdict"]) == (3, "inconclusive")
    assert found["confirmed_states"] == found["states"] == 100
    own = run_nearfar("crash", "check", "--structure", "map", "--recovery", "library")
    own.assert_refused(2, "map does not use libpmemobj")


@pytest.mark.parametrize("structure", STRUCTURES)
def test_each_call_taken_away_is_found_at_its_line(structure: str) -> None:
    sites = call_sites({"structure": structure, "n": 200, "seed": 1})
    named = 0
    for kind, site, stores in sites:
        result = mutant(structure, kind, site)
        named += any(finding.store in stores for finding in result.findings)
    assert len(sites) >= 4
    assert named >= 0.75 * len(sites)  # all structures: benchmarks/results/crash.md


@pytest.mark.parametrize("structure", [*STRUCTURES, "move"])
def test_a_call_taken_away_is_found_within_fifty_images(structure: str) -> None:
    sites = call_sites({"structure": structure, "n": 200, "seed": 1})
    asked = {"structure": structure, "n": 200, "seed": 1, "violations": 1, "budget": 50}
    missed = []
    for kind, site, _ in sites:
        file, _, line = site.rpartition(":")
        result = explore("check", {**asked, "suppress": f"{kind} {line} {file}"})
        assert all(1 <= finding.found_at_image <= 50 for finding in result.findings)
        if not result.violations:
            missed.append((kind, site))
    # One has no effect on 200 operations, one only once the log has come round.
    rare = {"map": "segments.hpp", "move": "redo_log.cpp"}
    assert len(missed) <= (structure in rare), missed
    assert all(kind == "fence" and rare[structure] in site for kind, site in missed)


@pytest.mark.long
def test_each_call_of_a_transaction_taken_away_is_found() -> None:
    trace = {"structure": "move", "n": 200, "seed": 1}
    sites = call_sites(trace)
    found = named = 0
    for kind, site, stores in sites:
        result = mutant("move", kind, site)
        found += result.violations > 0
        named += any(finding.store in stores for finding in result.findings)
    assert {kind for kind, _, _ in sites} == {"flush", "fence", "log"}
    assert found == len(sites)
    assert named >= 0.95 * len(sites)


def test_words_of_a_checker_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    said = "[/] an [i]odd[/i] :key: of " + "a" * 120
    place = f"{Path.cwd()}/odd.c:7"
    finding = Finding("broken", said, "flush", place, "", 3, 0, True, False, False, 1, 1, "1.image")
    print_result(exploration(Exploration(violations=1, findings=[finding])))
    print_result(replayed(Exploration(violations=1, findings=[finding])))
    printed = capsys.readouterr().out
    assert printed.count(f": {said}\n") == 2
    assert "the store of odd.c:7 is never flushed\n" in printed


def test_invalid_programs_and_plans_are_refused(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    absent = run_nearfar("crash", "run", "--checker", "true", "--", "/no/such/program")
    absent.assert_refused(2, "cannot run /no/such/program")
    poolless = run_nearfar("crash", "run", "--checker", "true", "--", "true")
    poolless.assert_refused(2, "mapped no file to be recorded")
    run_nearfar("crash", "replay", "no.image").assert_refused(2, "cannot read no.json")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    full = run_nearfar("crash", "check", "--structure", "map", "--images", "full")
    full.assert_refused(2, "full is not empty")
