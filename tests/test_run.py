"""``nearfar run``: a program with its heap where the command line or a plan says."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from compiling import compile_c
from conftest import RunNearfar
from nearfar.errors import BadInputError
from nearfar.place.preload import Placement, environment, parse_tiers

#: A program that prints what it was given, allocates, and ends as its arguments say.
PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char** argv) {
  char* blocks[1000];
  for (int i = 0; i < 1000; ++i) {
    blocks[i] = malloc(1000);
    memset(blocks[i], i, 1000);
  }
  for (int i = 0; i < 1000; ++i) free(blocks[i]);
  printf("%d %s\\n", argc, argc > 1 ? argv[1] : "-");
  if (argc > 2 && strcmp(argv[2], "abort") == 0) abort();
  return argc > 2 ? atoi(argv[2]) : 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("program")
    (folder / "prog.c").write_text(PROGRAM)
    for flag, name in (("-O0", "prog"), ("-static", "static")):
        subprocess.run(["cc", flag, "-o", folder / name, folder / "prog.c"], check=True)
    return folder / "prog"


def test_the_heap_is_where_it_was_asked_to(
    program: Path, tmp_path: Path, run_nearfar: RunNearfar
) -> None:
    done = run_nearfar(
        "run", "--tier", "far=dram", "--stats", "--json", "s.json", "--", str(program), "--odd", "5"
    )
    assert (done.code, done.stdout) == (5, "3 --odd\n")
    assert "far" in done.stderr
    document = json.loads((tmp_path / "s.json").read_text())
    assert document["exit_code"] == 5
    assert document["tiers"] == {"far": "dram"}
    (process,) = document["processes"]
    assert process["tiers"]["far"]["allocations"] >= 1000
    assert process["tiers"]["far"]["frees"] >= 1000
    assert process["tiers"]["near"]["allocations"] < 100


def test_a_tier_of_another_name_next_to_a_near_one(program: Path, run_nearfar: RunNearfar) -> None:
    done = run_nearfar(
        "run",
        "--tier",
        "near=dram,pages=4k",
        "--tier",
        "slow=file:/tmp,capacity=64MiB",
        "--json",
        "-",
        "--",
        str(program),
    )
    assert done.code == 0, done.stderr
    assert done.stderr == "1 -\n"  # standard output holds the document alone
    (process,) = json.loads(done.stdout)["processes"]
    assert process["tiers"]["slow"]["allocations"] >= 1000


def test_the_output_is_that_of_the_program_alone(run_nearfar: RunNearfar) -> None:
    script = ["-c", "import json, sys; print(json.dumps(list(range(9)))); sys.exit(3)"]
    plain = subprocess.run([sys.executable, *script], capture_output=True, text=True, check=False)
    done = run_nearfar("run", "--tier", "far=dram", "--", sys.executable, *script)
    assert (done.code, done.stdout, done.stderr) == (3, plain.stdout, plain.stderr)


def test_a_killed_program_leaves_no_statistics_and_says_so(
    program: Path, run_nearfar: RunNearfar
) -> None:
    done = run_nearfar("run", "--tier", "far=dram", "--stats", "--", str(program), "x", "abort")
    assert done.code == 128 + signal.SIGABRT
    assert "left no statistics" in done.stderr


def test_a_static_program_is_reported_to_ignore_it(program: Path, run_nearfar: RunNearfar) -> None:
    static = program.with_name("static")
    done = run_nearfar("run", "--tier", "far=dram", "--", str(static), "a", "4")
    assert (done.code, done.stdout) == (4, "3 a\n")
    assert "linked statically" in done.stderr


@pytest.mark.parametrize(("name", "code"), [("missing", 127), ("plain", 126)])
def test_a_program_that_cannot_be_started(
    name: str, code: int, tmp_path: Path, run_nearfar: RunNearfar
) -> None:
    (tmp_path / "plain").write_text("x")
    done = run_nearfar("run", "--tier", "far=dram", "--", f"./{name}")
    assert done.code == code
    assert "cannot start" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 2, "none are named"),
        (["--tier", "far"], 2, "is not NAME=TIER"),
        (["--tier", "far=dram", "--tier", "far=shm:"], 2, "given twice"),
        (["--tier", "a=dram", "--tier", "b=shm:"], 2, "2 are named"),
        (["--tier", "far=nonsense"], 2, "nonsense"),
        (["--tier", "far=numa:63"], 3, "63"),
        (["--tier", "far=dram,capacity=much"], 2, "much"),
        (["--strict"], 2, "--strict has no effect without --compare"),
        (["--plan", "missing.plan"], 2, "no such plan: missing.plan"),
        (["--plan", "pipe"], 2, "invalid plan pipe: not a regular file"),
        (["--plan", "pipe", "--check"], 2, "invalid plan pipe: not a regular file"),
        (["--plan", "x" * 300], 2, "File name too long"),
    ],
)
def test_bad_input_is_refused_before_the_program_starts(
    arguments: list[str], code: int, said: str, tmp_path: Path, run_nearfar: RunNearfar
) -> None:
    os.mkfifo(tmp_path / "pipe")
    done = run_nearfar("run", *arguments, "--", "touch", "started")
    done.assert_refused(code, said)
    assert not (tmp_path / "started").exists()


def test_weights_of_nodes_that_do_not_exist_are_reported(
    tmp_path: Path, run_nearfar: RunNearfar
) -> None:
    (tmp_path / "p.plan").write_text(
        "hmalloc-plan 1\ntier mixed numa:0+63,weights=5:3\nrule mixed size=1MiB..\n"
    )
    done = run_nearfar("run", "--plan", "p.plan", "--", "true")
    assert done.code == 0, done.stderr
    assert "tier mixed is numa:0+63,weights=5:3, and this machine has no node 63" in done.stderr
    assert run_nearfar("run", "--quiet", "--plan", "p.plan", "--", "true").stderr == ""


def test_an_invalid_plan_is_reported_with_file_and_line(
    tmp_path: Path, run_nearfar: RunNearfar
) -> None:
    (tmp_path / "p.plan").write_text("hmalloc-plan 1\n# fine so far\nnonsense here\n")
    done = run_nearfar("run", "--plan", "p.plan", "--", "touch", "started")
    done.assert_refused(2, "p.plan:3:")
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (["--plan", "p"], "/p:2: no such tier 'far'"),
        (["--tier", "far=nosuch"], "--tier far=nosuch: unknown tier 'nosuch'"),
        (["--plan", "p", "--tier", "mid=nosuch"], "--tier mid=nosuch: unknown tier 'nosuch'"),
        (
            ["--plan", "p", "--tier", "near=shm:/tmp"],
            "configure other memory as --tier far=TIER",
        ),
    ],
)
def test_an_error_names_the_flag_and_not_the_variable_made_of_it(
    flags: list[str], named: str, tmp_path: Path, run_nearfar: RunNearfar
) -> None:
    (tmp_path / "p").write_text("hmalloc-plan 1\nrule far size=4096..\n")
    done = run_nearfar("run", *flags, "--", "true")
    assert done.code == 2, done
    assert named in done.stderr
    assert "NEARFAR_HMALLOC" not in done.stderr
    if flags[-1] == "p":
        assert done.stderr.startswith("nearfar: plan ")
    theirs = run_nearfar("run", "--plan", "p", "--", "true", env={"NEARFAR_HMALLOC_FAR": "nosuch"})
    assert "NEARFAR_HMALLOC_FAR: unknown tier" in theirs.stderr  # as the user gave it


def test_variables_for_a_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LD_PRELOAD", "libother.so")
    monkeypatch.setenv("NEARFAR_HMALLOC_PLAN", "stale")
    placed = environment(Placement(None, parse_tiers(["cxl=numa:1", "near=dram"])), tmp_path)
    assert placed["LD_PRELOAD"].endswith("libhmalloc-preload.so:libother.so")
    assert placed["NEARFAR_HMALLOC_TIERS"] == "cxl=numa:1"
    assert placed["NEARFAR_HMALLOC_NEAR"] == "dram"
    assert placed["NEARFAR_HMALLOC_DEFAULT"] == "cxl"
    assert "NEARFAR_HMALLOC_PLAN" not in placed
    assert placed["NEARFAR_HMALLOC_STATS_FILE"] == f"{tmp_path}/%p"
    planned = environment(Placement(tmp_path / "p", {}), None)
    assert planned["NEARFAR_HMALLOC_PLAN"] == str(tmp_path / "p")
    assert "NEARFAR_HMALLOC_DEFAULT" not in planned
    with pytest.raises(BadInputError):
        parse_tiers(["a;b=dram"])


def test_real_programs_do_the_same_work(tmp_path: Path, run_nearfar: RunNearfar) -> None:
    for command in (["git", "--version"], ["grep", "-c", "root", "/etc/passwd"]):
        if not shutil.which(command[0]):
            continue
        plain = subprocess.run(
            command, capture_output=True, text=True, check=False, env=dict(os.environ)
        )
        done = run_nearfar("run", "--tier", "far=file:/tmp,capacity=256MiB", "--", *command)
        assert (done.code, done.stdout) == (plain.returncode, plain.stdout)


def test_an_empty_name_of_a_program_is_refused(run_nearfar: RunNearfar) -> None:
    done = run_nearfar("run", "--tier", "far=dram", "--", "")
    assert done.code == 2
    assert "the name of the program is empty" in done.stderr


def test_an_end_by_a_forbidden_system_call_is_explained(run_nearfar: RunNearfar) -> None:
    done = run_nearfar("run", "--tier", "far=dram", "--", "sh", "-c", "kill -SYS $$")
    assert done.code == 128 + signal.SIGSYS
    assert "as after SIGSYS" in done.stderr
    assert "allow mbind, move_pages and get_mempolicy" in done.stderr


def test_a_plan_that_cannot_be_loaded_is_refused_before_its_promise_is_read(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    plan = tmp_path / "p.plan"
    for text, words in (
        ("", "the first line must be 'hmalloc-plan 1', not"),
        ("hmalloc-plan 1\n" + "\n" * 10_000, "a plan has at most 10000 lines"),
        ("hmalloc-plan 1\nrule near\n", "promises nothing that could be checked"),
    ):
        plan.write_text(text)
        refused = run_nearfar("run", "--plan", str(plan), "--check", "--", "true")
        refused.assert_refused(2, words)
    run_nearfar("run", "--check", "--", "true").assert_refused(2, "--check requires a plan")


MAPPING = """
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
void *block; /* global, so that its allocation is not optimized away */
int main(void) {
  void *mapped = mmap(NULL, 8 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(mapped, 1, 8 << 20);
  block = malloc(4 << 20);
  memset(block, 1, 4 << 20);
  return 0;
}
"""
HEAP = "allocated_bytes=4194304 peak_bytes=4194304"
PROMISE = f"""hmalloc-plan 1
# promise 1 heap {HEAP} near_bytes=0 slowdown=1 slowdown_all_far=1
# promise 1 rule=1 tier=far allocations=1 allocated_bytes=8388608 peak_bytes=1 stall_share=0.5
# promise 1 rule=2 tier=far allocations=1 {HEAP} stall_share=0.5
rule far map=anonymous
rule far size=1MiB..
"""


def test_mappings_that_a_tier_cannot_hold_are_not_checked(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    program = compile_c(tmp_path, "mapping", MAPPING)
    plan = tmp_path / "p.plan"
    plan.write_text(PROMISE)
    for tier, unchecked in (("shm:", 8 << 20), ("numa:0", 0)):
        flags = ("--plan", str(plan), "--tier", f"far={tier}", "--check", "--no-traffic")
        done = run_nearfar("run", *flags, "--", str(program))
        assert ("not checked: 1 promised rule (8 MiB)" in done.stderr) == bool(unchecked)
        assert ("kept, as far as it was checked" in done.stderr) == bool(unchecked), done


def test_the_end_of_a_program_on_a_tier_that_can_be_full_is_explained(
    run_nearfar: RunNearfar,
) -> None:
    program = ("--", "python3", "-c", "bytearray(80 << 20)")
    full = run_nearfar("run", "--tier", "far=shm:,capacity=64MiB", *program)
    assert full.code == 1
    assert "if tier far was full, malloc() returned NULL" in full.stderr
    spilled = run_nearfar("run", "--tier", "far=shm:,capacity=64MiB,overflow=spill:near", *program)
    assert (spilled.code, spilled.stderr) == (0, "")
