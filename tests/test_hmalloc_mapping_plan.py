"""Plans for mappings and globals: the kernel's memory policy of each, and what stays as it is.

The far tier is node 0, so that a placed mapping has a policy of its own (1, preferred nodes) and
any other has the default (0). tests/vm/test_mapping_plan.py has two nodes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hmalloc_build import build_id_of, compile_c, preloaded, return_address
from nearfar.place.statistics_files import parse_statistics
from nearfar.records.run_statistics import ProcessStatistics

HEAD = "hmalloc-plan 1\ntier far numa:0\n"
PLACED, DEFAULT = 1, 0


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    flags = ["-fno-omit-frame-pointer", "-Wl,--build-id"]
    return compile_c(tmp_path_factory.mktemp("mapped"), "mapped_arrays", flags=flags)


def _frame(program: Path, function: str, callee: str = "mmap") -> str:
    return f"{build_id_of(program)}+{return_address(program, function, callee)}"


def _run(program: Path, folder: Path, text: str, **settings: str) -> dict[str, int]:
    plan = folder / "plan"
    plan.write_text(HEAD + text)
    done = preloaded(program, settings={"NEARFAR_HMALLOC_PLAN": str(plan), **settings})
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return {name: int(value) for name, value in (line.split() for line in done.stdout.splitlines())}


def _placed(found: dict[str, int]) -> set[str]:
    """Names of what the plan placed."""
    others = ("errno-", "fail", "contents-")
    return {
        name for name, value in found.items() if value == PLACED and not name.startswith(others)
    }


def _counted(program: Path, folder: Path, text: str) -> ProcessStatistics:
    _run(
        program,
        folder,
        text,
        NEARFAR_HMALLOC_STATS="exit,rules",
        NEARFAR_HMALLOC_STATS_FILE=str(folder / "stats"),
    )
    process = parse_statistics((folder / "stats").read_text())
    assert process is not None
    return process


def test_rules_for_blocks_place_no_mapping(program: Path, tmp_path: Path) -> None:
    found = _run(program, tmp_path, "rule far\ndefault far\n")
    assert _placed(found) == set()


def test_one_site(program: Path, tmp_path: Path) -> None:
    found = _run(program, tmp_path, f"rule far map={_frame(program, 'first')}\n")
    of_first = {"first", "through", "populated", "grown", "grown-end", "less", "shared"}
    assert _placed(found) == {*of_first, "child-new"}


@pytest.mark.parametrize("unwind", ["frame-pointers", "tables"])
def test_a_chain(program: Path, tmp_path: Path, unwind: str) -> None:
    chain = f"{_frame(program, 'first')}<{_frame(program, 'through', 'first')}"
    found = _run(program, tmp_path, f"unwind {unwind}\nrule far map={chain}\n")
    assert _placed(found) == {"through"}


def test_anonymous_memory_by_its_size(program: Path, tmp_path: Path) -> None:
    found = _run(program, tmp_path, "rule far map=anonymous size=2MiB..4MiB\n")
    assert _placed(found) == {"second", "child"}
    found = _run(program, tmp_path, "rule far map=anonymous\n")
    assert {"first", "second", "range-4M", "committed", "child", "child-new"} <= _placed(found)
    assert not {"shared", "file", "file-private", "zeroed", "filled", "brk"} & _placed(found)


def test_ranges_of_one_mapping(program: Path, tmp_path: Path) -> None:
    site = _frame(program, "ranged")
    rules = f"rule near map={site} range=1MiB..1028KiB\nrule far map={site} range=..2MiB\n"
    found = _run(program, tmp_path, rules)
    assert _placed(found) == {"range-0"}
    assert found["contents-moved"] == 67  # in several parts, which the kernel does not move at once
    found = _run(program, tmp_path, f"rule far map={site} range=1MiB..1028KiB\n")
    assert _placed(found) == {"range-1M", "range-moved-1M"}
    found = _run(program, tmp_path, f"rule far map={site} range=4MiB..8MiB\n")
    assert _placed(found) == {"range-4M", "range-moved-4M"}  # not what it has grown by
    assert found["contents-moved"] == 67


def test_memory_reserved_first_belongs_to_the_reservation(program: Path, tmp_path: Path) -> None:
    reserved = _frame(program, "reserve")
    found = _run(program, tmp_path, f"rule far map={reserved} range=..8MiB\n")
    assert _placed(found) == {"protected", "committed"}
    rules = f"rule near map={_frame(program, 'commit')}\nrule far map={reserved}\n"
    assert _placed(_run(program, tmp_path, rules)) == {"protected"}


def test_resized_mappings(program: Path, tmp_path: Path) -> None:
    found = _run(program, tmp_path, f"rule far map={_frame(program, 'resize', 'mremap')}\n")
    moved = {"range-moved-1M", "range-moved-4M", "range-moved-12M"}
    assert _placed(found) == {"grown", "grown-end", "less", *moved}
    assert found["contents-grown"] == 5
    rules = f"rule far map={_frame(program, 'first')} range=3MiB..\n"
    assert _placed(_run(program, tmp_path, rules)) == {"grown-end"}


def test_files_and_shared_memory_by_name(program: Path, tmp_path: Path) -> None:
    found = _run(program, tmp_path, "rule far map=file:memfd:table size=1MiB..\n")
    assert _placed(found) == {"file", "file-private"}
    assert _placed(_run(program, tmp_path, "rule far map=file:zero\n")) == {"shared"}


def test_the_brk_heap(program: Path, tmp_path: Path) -> None:
    assert _placed(_run(program, tmp_path, "rule far map=heap\n")) == {"brk"}


def test_globals(program: Path, tmp_path: Path) -> None:
    for name in ("name:", build_id_of(program)[:8]):
        found = _run(program, tmp_path, f"rule far globals={name}\n")
        assert _placed(found) == {"zeroed", "zeroed-end", "filled"}
    assert _placed(_run(program, tmp_path, "rule far globals=name:other.so\n")) == set()
    found = _run(
        program, tmp_path, "rule near globals=name: range=..64KiB\nrule far globals=name:\n"
    )
    assert _placed(found) == {"zeroed", "zeroed-end"}  # .data begins with the other array
    found = _run(program, tmp_path, "rule far globals=name: range=..4KiB\n")
    assert _placed(found) == set()


def test_calls_fail_and_succeed_as_without_a_plan(program: Path, tmp_path: Path) -> None:
    found = _run(program, tmp_path, "rule far map=anonymous\nrule far map=heap\n")
    assert {name: found[name] for name in found if "errno" in name or "fail" in name} == {
        "errno-kept": 77,
        "errno-kept-by-munmap": 77,
        "failure": 22,
        "failed-munmap": 22,
        "failed-mremap": 22,
    }


def test_bytes_and_pages_are_counted_by_rule(program: Path, tmp_path: Path) -> None:
    site = _frame(program, "second")
    rules = f"rule far size=..9\nrule far map={site} size=3MiB..3MiB\nrule far globals=name:\n"
    counted = _counted(program, tmp_path, rules).rules
    assert [counted[rule].memory for rule in (1, 2, 3)] == ["heap", "mapping", "globals"]
    mapped = counted[2].counts
    assert (mapped["allocations"], mapped["allocated_bytes"], mapped["peak_bytes"]) == (
        1,
        3 << 20,
        3 << 20,
    )
    assert (mapped["pages"], mapped["absent"]) == (768, 768)  # no page was touched
    globals_ = counted[3].counts
    assert globals_["allocated_bytes"] >= 6 << 20
    assert globals_["node0"] >= 256  # those of .data at least
    assert globals_["elsewhere_bytes"] == 0


def test_a_named_mapping_is_reported_as_without_effect(program: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan"
    plan.write_text(f"{HEAD}rule far map=name:arena\n")
    done = preloaded(program, settings={"NEARFAR_HMALLOC_PLAN": str(plan)})
    assert done.returncode == 0
    assert "plan:3: map=name: has no effect here" in done.stderr


def test_rules_for_a_tier_in_a_file_are_reported_as_without_effect(tmp_path: Path) -> None:
    plan = tmp_path / "plan"
    rules = "rule far map=anonymous\nrule far globals=name:\n"
    plan.write_text(f"hmalloc-plan 1\ntier far shm:,capacity=16MiB\n{rules}")
    done = preloaded("true", settings={"NEARFAR_HMALLOC_PLAN": str(plan)})
    assert done.returncode == 0
    assert "2 rules for mappings and globals have no effect: tier far is not" in done.stderr
    assert "--tier far=numa:1" in done.stderr


def test_a_library_that_is_loaded_later(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    flags = ["-DLIBRARY", "-shared", "-fPIC", "-Wl,--build-id=none"]
    library = compile_c(tmp_path / "lib", "mapping_library", flags=flags)
    program = compile_c(tmp_path, "mapping_library")
    plan = tmp_path / "plan"
    at = return_address(library, "map_there", "mmap")
    plan.write_text(f"{HEAD}rule far map=name:mapping_library+{at}\n")
    done = preloaded(program, library, settings={"NEARFAR_HMALLOC_PLAN": str(plan)})
    assert done.stdout == f"own {DEFAULT}\nlibrary {PLACED}\n", done.stderr


def test_threads_signal_handlers_and_forks(tmp_path: Path) -> None:
    flags = ["-fno-omit-frame-pointer", "-Wl,--build-id"]
    program = compile_c(tmp_path, "mapping_churn", flags=flags)
    plan = tmp_path / "plan"
    rules = f"rule near map={_frame(program, 'map')} range=8KiB..16KiB\nrule far map=anonymous\n"
    plan.write_text(HEAD + rules)
    statistics = tmp_path / "stats"
    done = preloaded(
        program,
        settings={
            "NEARFAR_HMALLOC_PLAN": str(plan),
            "NEARFAR_HMALLOC_STATS": "exit,rules",
            "NEARFAR_HMALLOC_STATS_FILE": str(statistics),
        },
    )
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr
    process = parse_statistics(statistics.read_text())
    assert process is not None
    for number in (1, 2):
        counts = process.rules[number].counts
        assert counts["allocations"] > 1000
        assert counts["elsewhere"] == 0
        assert 0 < counts["live_bytes"] <= counts["peak_bytes"]


def test_children_by_clone_map_memory_while_threads_hold_the_lock(tmp_path: Path) -> None:
    program = compile_c(tmp_path, "cloned_children")
    plan = tmp_path / "plan"
    plan.write_text(HEAD + "rule far map=anonymous\nrule far map=heap\n")
    done = preloaded(program, settings={"NEARFAR_HMALLOC_PLAN": str(plan)}, timeout=300)
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr


@pytest.mark.parametrize("counted", [False, True])
def test_a_handler_on_a_small_stack_maps_memory(tmp_path: Path, counted: bool) -> None:
    program = compile_c(tmp_path, "small_signal_stack")
    plan = tmp_path / "plan"
    plan.write_text(HEAD + "rule far map=anonymous\n")
    settings = {"NEARFAR_HMALLOC_PLAN": str(plan)}
    if counted:
        settings["NEARFAR_HMALLOC_STATS"] = "exit,rules"
        settings["NEARFAR_HMALLOC_STATS_FILE"] = str(tmp_path / "stats")
    done = preloaded(program, settings=settings)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr
