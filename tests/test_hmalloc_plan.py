"""Plans: what goes where by site, size, thread, budget and ratio; and plans that make no sense."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hmalloc_build import build_id_of, compile_c, preloaded, return_address

HEAD = "hmalloc-plan 1\ntier far dram\n"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    flags = ["-fno-omit-frame-pointer", "-Wl,--build-id"]
    return compile_c(tmp_path_factory.mktemp("plan"), "two_sites", flags=flags)


def _run(program: Path, folder: Path, text: str) -> dict[str, int]:
    plan = folder / "plan"
    plan.write_text(HEAD + text)
    done = preloaded(program, settings={"NEARFAR_HMALLOC_PLAN": str(plan)})
    assert done.returncode == 0, done.stderr
    return {name: int(value) for name, value in (line.split() for line in done.stdout.splitlines())}


def test_sizes(program: Path, tmp_path: Path) -> None:
    found = _run(program, tmp_path, "rule far size=64KiB..\n")
    assert (found["first-small"], found["first-large"], found["second-large"]) == (0, 1, 1)
    found = _run(program, tmp_path, "rule far size=100..100\n")
    assert (found["first-small"], found["first-large"]) == (1, 0)


def test_default(program: Path, tmp_path: Path) -> None:
    found = _run(program, tmp_path, "default far\nrule near size=..1000\n")
    assert (found["first-small"], found["first-large"]) == (0, 1)


def test_libc_may_allocate_first_in_a_thread(program: Path, tmp_path: Path) -> None:
    """As in the Java VM: ``pthread_getattr_np`` allocates under a lock that the stack needs."""
    threads = compile_c(tmp_path, "thread_attributes", flags=["-pthread"])
    where = return_address(program, "first", "malloc")
    site = f"{build_id_of(program)}+{where}"
    plan = tmp_path / "plan"
    plan.write_text(f"{HEAD}unwind frame-pointers\nrule far site={site}<{site}\n")
    done = preloaded(threads, settings={"NEARFAR_HMALLOC_PLAN": str(plan)}, timeout=60)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr


@pytest.mark.parametrize("digits", [8, None], ids=["short build-id", "whole build-id"])
def test_one_site(program: Path, tmp_path: Path, digits: int | None) -> None:
    where = return_address(program, "first", "malloc")
    found = _run(program, tmp_path, f"rule far site={build_id_of(program)[:digits]}+{where}\n")
    names = ["first-small", "first-large", "through-small", "second-small", "second-large"]
    assert [found[name] for name in names] == [1, 1, 1, 0, 0]


@pytest.mark.parametrize("unwind", ["frame-pointers", "tables"])
def test_a_chain(program: Path, tmp_path: Path, unwind: str) -> None:
    build_id = build_id_of(program)
    inner = return_address(program, "first", "malloc")
    outer = return_address(program, "through", "first")
    chain = f"{build_id}+{inner}<{build_id}+{outer}"
    found = _run(program, tmp_path, f"unwind {unwind}\nrule far site={chain}\n")
    assert (found["through-small"], found["first-small"], found["second-small"]) == (1, 0, 0)


def test_a_chain_on_the_stack_of_a_coroutine(tmp_path: Path) -> None:
    """Its outermost frame pointer leads to memory that cannot be read: the chain ends there."""
    flags = ["-fno-omit-frame-pointer", "-Wl,--build-id"]
    program = compile_c(tmp_path, "coroutine", flags=flags)
    build_id = build_id_of(program)
    inner = return_address(program, "first", "malloc")
    outer = return_address(program, "coroutine", "first")
    chain = f"{build_id}+{inner}<{build_id}+{outer}"
    longer = f"{chain}<{build_id}+{outer}<{build_id}+{outer}"
    assert _run(program, tmp_path, f"rule far site={chain}\n") == {"coroutine": 1}
    assert _run(program, tmp_path, f"rule far site={longer}\n") == {"coroutine": 0}


def test_threads(program: Path, tmp_path: Path) -> None:
    found = _run(program, tmp_path, "rule far thread=worker-*\n")
    assert (found["thread-small"], found["first-small"]) == (1, 0)
    assert _run(program, tmp_path, "rule far thread=worker\n")["thread-small"] == 0


def test_budget_is_for_live_blocks(program: Path, tmp_path: Path) -> None:
    found = _run(program, tmp_path, "rule far size=5000..5000 budget=125KiB\n")
    assert (found["many-far"], found["many-again-far"]) == (25, 25)


def test_ratio(program: Path, tmp_path: Path) -> None:
    found = _run(program, tmp_path, "rule far size=5000..5000 ratio=0.25\n")
    assert (found["many-far"], found["many-again-far"]) == (25, 25)


def test_first_rule_decides(program: Path, tmp_path: Path) -> None:
    found = _run(program, tmp_path, "rule near size=100..100\nrule far\n")
    assert (found["first-small"], found["first-large"]) == (0, 1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the first line must be 'hmalloc-plan 1'"),
        (
            "hmalloc-plan 2\n",
            "plan:1: the first line must be 'hmalloc-plan 1', not 'hmalloc-plan 2'",
        ),
        (HEAD + "rule\n", "plan:3: invalid tier name"),
        (HEAD + "rule slow\n", "plan:3: no such tier 'slow'"),
        (HEAD + "rule far size=9..1\n", "invalid condition 'size=9..1'"),
        (HEAD + "rule far size=5\n", "invalid condition 'size=5'"),
        (HEAD + "rule far ratio=2\n", "invalid condition 'ratio=2'"),
        (HEAD + "rule far ratio=.\n", "invalid condition 'ratio=.'"),
        (HEAD + "rule far site=xyz+0x1\n", "invalid condition 'site=xyz+0x1'"),
        (HEAD + "rule far site=name:a+0x1<\n", "invalid condition 'site=name:a+0x1<'"),
        (HEAD + "rule far size=1.. size=..9\n", "duplicate condition 'size=..9'"),
        (HEAD + "rule far budget=much\n", "invalid condition 'budget=much'"),
        (HEAD + "rule far color=red\n", "or ratio=, not 'color=red'"),
        (
            HEAD + "rule far range=0..9\n",
            "at= and range= require map= or globals=, not 'range=0..9'",
        ),
        (HEAD + "rule far map=anonymous budget=1GiB\n", "but not 'budget=1GiB'"),
        (HEAD + "rule far map=everything\n", "plan:3: invalid condition 'map=everything'"),
        (HEAD + "place far\n", "expected rule, tier, default or unwind, not 'place'"),
        (HEAD + "unwind magic\n", "not 'magic'"),
        (HEAD + "unwind tables now\n", "unexpected text after unwind 'tables'"),
        ("hmalloc-plan 1\ntier far nonsense\n", "plan:2: unknown tier 'nonsense'"),
    ],
)
def test_plans_that_make_no_sense(tmp_path: Path, text: str, words: str) -> None:
    plan = tmp_path / "plan"
    plan.write_text(text)
    done = preloaded("true", settings={"NEARFAR_HMALLOC_PLAN": str(plan)})
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.startswith("libhmalloc: NEARFAR_HMALLOC_PLAN: ")


def test_a_missing_plan(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, said in (("none", "cannot read the plan"), ("pipe", "not a regular file")):
        done = preloaded("true", settings={"NEARFAR_HMALLOC_PLAN": str(tmp_path / name)})
        assert done.returncode == 2
        assert said in done.stderr
