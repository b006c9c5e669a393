"""``nearfar place`` and a program that runs: on the one node that every machine has."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import nearfar
from changing_memory import PLAN, PROMISE, ChangingMemory, build, running
from conftest import RunNearfar
from nearfar.errors import BadInputError
from nearfar.place.attached.regions import ProcessRegions
from nearfar.records.placement import PlacementResult
from nearfar.report.placement_words import finding

MIB = 1 << 20
NEARFAR = [sys.executable, "-m", "nearfar.cli.app"]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("built"))


@pytest.fixture
def changing(program: Path, tmp_path: Path) -> Iterator[ChangingMemory]:
    with running(program, tmp_path / "pipes") as found:
        yield found


@pytest.fixture
def plan(tmp_path: Path) -> str:
    file = tmp_path / "here.plan"
    file.write_text(PLAN.format(node=0))
    return str(file)


def test_all_memory_of_the_plan_is_found_where_it_belongs(
    changing: ChangingMemory, plan: str, tmp_path: Path, run_nearfar: RunNearfar
) -> None:
    done = run_nearfar(
        "place", "--pid", str(changing.pid), "--plan", plan, "--once", "--json", "p.json",
        "--details",
    )  # fmt: skip
    assert done.code == 0, done.stderr
    found = json.loads((tmp_path / "p.json").read_text())
    assert found["placed_bytes"] == found["wanted_bytes"] >= (24 + 4 + 4 + 4) * MIB
    assert (found["ended"], found["complete"], found["moved_bytes"]) == ("done", True, 0)
    assert found["program"].endswith("/changing_memory")
    by_text = {rule["text"].split()[2]: rule for rule in found["rules"]}
    assert by_text["map=file:shared.data"]["wanted_bytes"] == 4 * MIB
    assert by_text["globals=name:"]["region_count"] == 1
    anonymous = by_text["map=anonymous"]["wanted_bytes"] + by_text["map=name:table"]["wanted_bytes"]
    assert anonymous >= 28 * MIB
    assert "100 % of the memory that the plan places in changing_memory" in done.stdout
    assert "globals=name:changing_memory" in done.stdout
    record = re.search(r"record: (.*)", done.stderr)
    assert record is not None
    assert run_nearfar("report", record[1]).code == 0
    assert "Pages placed" in (tmp_path / record[1] / "report.html").read_text()
    assert "Pages placed" in run_nearfar("show", record[1]).stdout
    assert changing.ask("rounds").isdigit()


def attached(changing: ChangingMemory, plan: str, folder: Path) -> subprocess.Popen[str]:
    """``nearfar place``, attached: it has looked at the program at least once."""
    place = subprocess.Popen(
        [*NEARFAR, "place", "--pid", str(changing.pid), "--plan", plan, "--json", "-"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
    )
    asleep = 0
    while place.poll() is None and asleep < 10:  # as between two looks
        state = Path(f"/proc/{place.pid}/stat").read_text().rpartition(")")[2].split()[0]
        begun = any((folder / "nearfar-runs").glob("*/run.json"))
        asleep = asleep + 1 if begun and state == "S" else 0
        time.sleep(0.05)
    return place


def ending(place: subprocess.Popen[str]) -> tuple[int, str]:
    stdout, stderr = place.communicate(timeout=60)
    assert stdout, stderr
    return place.returncode, json.loads(stdout)["ended"]


def test_it_stays_attached_until_the_program_ends(
    changing: ChangingMemory, plan: str, tmp_path: Path
) -> None:
    place = attached(changing, plan, tmp_path)
    assert place.poll() is None
    changing.send("exit")
    assert ending(place) == (0, "program ended")


def test_it_stops_when_the_process_runs_another_program(
    changing: ChangingMemory, plan: str, tmp_path: Path
) -> None:
    place = attached(changing, plan, tmp_path)
    changing.send("exec")
    assert ending(place) == (0, "program replaced")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_ends_with_a_summary_when_it_is_interrupted(
    changing: ChangingMemory, plan: str, tmp_path: Path, number: signal.Signals
) -> None:
    place = attached(changing, plan, tmp_path)
    place.send_signal(number)
    assert ending(place) == (0, "interrupted")
    assert changing.ask("rounds").isdigit()


def test_it_survives_a_hangup_that_is_ignored(
    changing: ChangingMemory, plan: str, tmp_path: Path
) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        place = attached(changing, plan, tmp_path)
    finally:
        signal.signal(signal.SIGHUP, before)
    place.send_signal(signal.SIGHUP)
    changing.ask("rounds")
    changing.send("exit")
    assert ending(place) == (0, "program ended")


def result_without_pages(**changed: object) -> PlacementResult:
    facts = {"ended": "done", "complete": True, "looks": 1, "attached_s": 0.5, "wanted_bytes": 0}
    facts |= {"pid": 7, "program": "/bin/sleep", "placed_bytes": 0, "moved_bytes": 0}
    return PlacementResult.model_validate(facts | changed)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"ended": "program ended", "complete": False}, "ended before the first look was finished"),
        ({"ended": "time", "complete": False}, "The first look at sleep (process 7) was not"),
        ({}, "sleep (process 7) has no memory that the plan places"),
        ({"reverted": "run"}, "moved in run: there is nothing to move back"),
        (
            {"reverted": "run", "refused": [{"reason": "absent", "size_bytes": 4096}]},
            "None of the pages that moved in run is in memory",
        ),
    ],
)
def test_nothing_that_was_found_is_no_percentage(changed: dict[str, object], words: str) -> None:
    text = finding(result_without_pages(**changed))
    assert words in text
    assert "%" not in text


def test_a_time_ends_it(changing: ChangingMemory, plan: str, tmp_path: Path) -> None:
    found = nearfar.place_process(
        changing.pid, nearfar.Options(out=tmp_path / "r"), plan=plan, time_s=0.5
    ).result
    assert (found.ended, found.complete) == ("time", True)
    assert found.looks >= 1
    assert found.children == 0


def test_children_are_counted_and_not_followed(
    changing: ChangingMemory, plan: str, run_nearfar: RunNearfar
) -> None:
    changing.ask("fork")
    done = run_nearfar("place", "--pid", str(changing.pid), "--plan", plan, "--once")
    assert "1 child of the process not followed" in done.stdout
    assert changing.ask("join") == "done"


def test_nothing_that_moved_is_nothing_to_revert(
    changing: ChangingMemory, plan: str, run_nearfar: RunNearfar
) -> None:
    pid = str(changing.pid)
    assert run_nearfar("place", "--pid", pid, "--plan", plan, "--once").code == 0
    done = run_nearfar("place", "--pid", pid, "--revert")
    assert done.code == 0, done.stderr
    assert "No page of changing_memory" in done.stdout
    again = run_nearfar("place", "--pid", pid, "--revert")
    again.assert_refused(2, f"no record below nearfar-runs is of process {pid} as it runs now")


def test_what_cannot_be_placed_is_refused(
    changing: ChangingMemory, plan: str, tmp_path: Path, run_nearfar: RunNearfar
) -> None:
    pid = str(changing.pid)

    def place(*arguments: str) -> list[str]:
        return ["place", "--plan", plan, *arguments]

    absent = str((1 << 22) - 1)
    run_nearfar(*place("--pid", absent)).assert_refused(2, f"no process {absent}")
    run_nearfar(*place("--pid", pid, "--tier", "far=numa:63")).assert_refused(3, "NUMA node 63")
    run_nearfar(*place("--pid", pid, "--tier", "far=shm:")).assert_refused(
        2, "can only move between nodes"
    )
    run_nearfar("place", "--pid", pid).assert_refused(2, "name a plan, or --revert")
    run_nearfar(*place("--pid", pid, "--revert")).assert_refused(2, "not both")
    run_nearfar(*place("--pid", pid, "somewhere")).assert_refused(2, "a record is for --revert")
    heap = tmp_path / "heap.plan"
    heap.write_text("hmalloc-plan 1\nrule near size=64KiB..\n")
    run_nearfar("place", "--pid", pid, "--plan", str(heap)).assert_refused(
        2, "no rule that can be applied to a running program"
    )
    heap.write_text("hmalloc-plan 1\nrule near map=stack\n")
    run_nearfar("place", "--pid", pid, "--plan", str(heap)).assert_refused(
        2, "heap.plan:2: invalid condition 'map=stack'"
    )


def test_an_ended_program_and_a_thread_of_the_kernel_are_refused(plan: str) -> None:
    with subprocess.Popen(["true"]) as ended:
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        with pytest.raises(BadInputError, match="has ended, and its parent"):
            nearfar.place_process(ended.pid, plan=plan)
    if Path("/proc/2/comm").exists() and Path("/proc/2/comm").read_text() == "kthreadd\n":
        with pytest.raises(BadInputError, match="is a thread of the kernel"):
            nearfar.place_process(2, plan=plan)


@pytest.mark.skipif(os.getuid() != 0, reason="needs another user's process")
def test_a_program_of_another_user_is_refused(
    changing: ChangingMemory, plan: str, tmp_path: Path
) -> None:
    for path in (tmp_path, *list(tmp_path.parents)[:3]):
        path.chmod(0o755)
    try:
        done = subprocess.run(
            [*NEARFAR, "place", "--pid", str(changing.pid), "--plan", plan, "--once"],
            cwd="/tmp",
            user=65534,
            env={"PATH": os.environ["PATH"], "HOME": "/tmp"},
            capture_output=True,
            text=True,
            check=False,
        )
    except PermissionError:
        pytest.skip("another user cannot run nearfar from here")
    if "No module named" in done.stderr or "Permission denied" in done.stderr.split("nearfar:")[0]:
        pytest.skip("another user cannot run nearfar from here")
    assert done.returncode == 3, done.stderr
    assert "cannot be inspected" in done.stderr
    assert "CAP_SYS_NICE" in done.stderr


def test_regions_of_a_program_that_grows_and_unmaps(changing: ChangingMemory) -> None:
    reader = ProcessRegions(changing.pid)

    def at(address: int) -> int:
        return sum(each.size() for each in reader.read() if each.start <= address < each.end)

    begin = int(changing.ask("at anonymous"), 16)
    assert at(begin + 20 * MIB) >= 24 * MIB
    changing.ask("unmap")
    assert at(begin + 20 * MIB) == 0


# nearfar run --plan of a program that no library can be preloaded into


@pytest.fixture(scope="module")
def static(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("static")
    (folder / "s.c").write_text(
        "#include <stdlib.h>\n"
        "#include <string.h>\n"
        "#include <unistd.h>\n"
        "int main(int argc, char** argv) {\n"
        "  char* block = malloc(50 << 20);\n"
        "  memset(block, 1, 50 << 20);\n"
        "  if (argc > 1) sleep(atoi(argv[1]));\n"
        "  return 3 + (block[1 << 20] != 1);\n"
        "}\n"
    )
    subprocess.run(["cc", "-static", folder / "s.c", "-o", folder / "s"], check=True)
    return folder / "s"


def test_a_static_program_is_placed_from_outside(
    static: Path, plan: str, tmp_path: Path, run_nearfar: RunNearfar
) -> None:
    flags = ("--plan", plan, "--stats", "--json", "s.json")
    done = run_nearfar("run", *flags, "--", str(static), "4")
    assert done.code == 3
    assert "is linked statically" in done.stderr
    assert "its pages are moved from outside" in done.stderr
    assert "left no statistics" not in done.stderr
    found = json.loads((tmp_path / "s.json").read_text())["placement"]
    assert found["ended"] == "program ended"
    assert found["placed_bytes"] == found["wanted_bytes"] >= 50 * MIB
    assert "100 % of the memory that the plan places in s " in done.stderr.replace("\n", " ")


def test_a_static_program_is_checked_from_outside(
    static: Path, plan: str, tmp_path: Path, run_nearfar: RunNearfar
) -> None:
    file = Path(plan)
    file.write_text(file.read_text() + PROMISE)
    flags = ("--plan", plan, "--check", "--json", "s.json")
    done = run_nearfar("run", *flags, "--", str(static), "4")
    assert done.code == 3  # the program's own
    assert "promise is kept" in done.stderr
    check = json.loads((tmp_path / "s.json").read_text())["check"]
    assert check["kept"]
    assert check["kept_share"] == 1
    assert sum(rule["pages"] for rule in check["rules"]) >= 50 * MIB // 4096


def test_a_static_program_that_cannot_be_checked_is_not_started(
    static: Path, tmp_path: Path, run_nearfar: RunNearfar
) -> None:
    plan = tmp_path / "heap.plan"
    plan.write_text("hmalloc-plan 1\nrule near size=64KiB..\n" + PROMISE)
    done = run_nearfar("run", "--plan", str(plan), "--check", "--", str(static))
    done.assert_refused(3, "no rule that can be applied from outside")


def test_a_static_program_without_such_rules_is_not(
    static: Path, tmp_path: Path, run_nearfar: RunNearfar
) -> None:
    plan = tmp_path / "heap.plan"
    plan.write_text("hmalloc-plan 1\nrule near size=64KiB..\n")
    done = run_nearfar("run", "--plan", str(plan), "--", str(static))
    assert done.code == 3
    assert "its memory is not redirected" in done.stderr


def test_a_static_program_on_an_absent_node_is_not_started(
    static: Path, plan: str, run_nearfar: RunNearfar
) -> None:
    run_nearfar("run", "--plan", plan, "--tier", "far=numa:63", "--", str(static)).assert_refused(
        3, "NUMA node 63"
    )
