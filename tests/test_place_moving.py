"""Pages are moved to where they belong, with a fake kernel of two nodes."""

from __future__ import annotations

import errno
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearfar._native import NativeError
from nearfar.errors import BadInputError, MachineError
from nearfar.place.attached import kernel_moves, page_mover
from nearfar.place.attached.block_turns import BLOCK, single_node_parts
from nearfar.place.attached.kernel_moves import moving_settings
from nearfar.place.attached.node_tiers import NodeTier, node_tiers
from nearfar.place.attached.page_mover import Look, MoveLimits, PageMover, StoppedError, WantedRange
from nearfar.place.attached.placer import Placer, _next_interval

PAGE = 4096
NEAR, FAR = NodeTier("near", "numa:0", frozenset({0})), NodeTier("far", "numa:1", frozenset({1}))


class FakeKernel:
    """Pages by number, each with its node; ``pinned`` pages do not move."""

    def __init__(self, nodes: dict[int, int]) -> None:
        self.nodes = nodes
        self.pinned: dict[int, int] = {}
        self.current = True
        self.moved = 0
        self.asked: list[int] = []
        self.room = 1 << 30
        self.full: set[int] = set()

    def is_current(self) -> bool:
        return self.current

    def locate(
        self, start: int, end: int, max_pages: int
    ) -> tuple[list[tuple[int, int, int]], int]:
        pages = [page for page in sorted(self.nodes) if start <= page * PAGE < end][:max_pages]
        end = (pages[-1] + 1) * PAGE if len(pages) == max_pages else end
        return runs((page, self.nodes[page]) for page in pages), end

    def move(
        self, wanted: Sequence[tuple[int, int, int]], node: int, shared: bool
    ) -> list[tuple[int, int, int]]:
        pages = [address // PAGE + i for address, count, _ in wanted for i in range(count)]
        self.asked.append(len(pages))
        return runs((page, self._move(page, node, shared=shared)) for page in pages)

    def _move(self, page: int, node: int, *, shared: bool) -> int:
        if page not in self.nodes:
            return -errno.ENOENT
        reason = self.pinned.get(page, 0)
        if reason and not (shared and reason == errno.EACCES):
            return -reason
        if self.room == 0 or node in self.full:
            return -errno.ENOMEM
        self.room -= 1
        self.nodes[page] = node
        self.moved += 1
        return node


class FakeProgram:
    """A program that runs until `ended` is set."""

    def __init__(self) -> None:
        self.waited = 0.0
        self.ended = False

    def wait(self, seconds: float) -> bool:
        self.waited += max(seconds, 0.0)
        return self.ended

    def is_exiting(self) -> bool:
        return self.ended


def runs(pages: Iterable[tuple[int, int]]) -> list[tuple[int, int, int]]:
    found: list[tuple[int, int, int]] = []
    for page, node in pages:
        if found and found[-1][2] == node and found[-1][0] // PAGE + found[-1][1] == page:
            found[-1] = (found[-1][0], found[-1][1] + 1, node)
        else:
            found.append((page * PAGE, 1, node))
    return found


def mover(kernel: FakeKernel, limits: MoveLimits | None = None, **hooks: Any) -> PageMover:
    program: Any = FakeProgram()
    pages: Any = kernel
    hooks = {"journal": lambda runs: None, "progress": lambda look: None} | hooks
    return PageMover(program, pages, limits or MoveLimits(rate=None), **hooks)


def wanted(first: int, last: int, tier: NodeTier, rule: int = 1) -> WantedRange:
    return WantedRange(first * PAGE, last * PAGE, tier, rule)


@pytest.fixture(autouse=True)
def migrations(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The kernel's counter of migrations; what the mover moves is not in it."""
    counter = [0]
    monkeypatch.setattr(page_mover, "migrated_pages", lambda: counter[0])
    return counter


PLACES = st.dictionaries(st.integers(0, 300), st.sampled_from([0, 1, -errno.EFAULT]), max_size=80)
REASONS = st.dictionaries(
    st.integers(0, 300), st.sampled_from([errno.EBUSY, errno.EACCES, errno.EIO]), max_size=10
)


@given(PLACES, REASONS, st.integers(0, 300), st.booleans())
def test_every_page_is_placed_or_counted(
    nodes: dict[int, int], pinned: dict[int, int], border: int, shared: bool
) -> None:
    kernel = FakeKernel(dict(nodes))
    kernel.pinned = pinned
    look = mover(kernel, MoveLimits(None, shared=shared)).look(
        [wanted(0, border, FAR), wanted(border, 301, NEAR, rule=2)]
    )
    kept = {
        page
        for page, why in pinned.items()
        if page in nodes and not (shared and why == errno.EACCES)
    }
    for page, node in nodes.items():
        belongs = 1 if page < border else 0
        assert kernel.nodes[page] == (node if node < 0 or page in kept else belongs)
    real = {page: node for page, node in nodes.items() if node >= 0}
    right = sum(kernel.nodes[page] == (1 if page < border else 0) for page in real)
    total = look.total()
    assert total.wanted == len(real) * PAGE
    assert total.placed == right * PAGE
    assert total.moved == kernel.moved * PAGE
    assert sum(look.refused.values()) == (len(nodes) - right) * PAGE
    assert look.refused["zero page"] == (len(nodes) - len(real)) * PAGE
    assert look.complete


def test_reasons_have_names() -> None:
    kernel = FakeKernel(dict.fromkeys(range(4), 0))
    kernel.pinned = {0: errno.EBUSY, 1: errno.EACCES, 2: errno.EIO}
    look = mover(kernel).look([wanted(0, 4, FAR)])
    assert look.refused == {"busy": PAGE, "shared": PAGE, "other": PAGE}


def test_a_full_node_is_asked_no_more() -> None:
    kernel = FakeKernel(dict.fromkeys(range(5000), 0))
    kernel.room = 100
    look = mover(kernel).look([wanted(0, 5000, FAR)])
    assert look.refused == {"no memory": 4900 * PAGE}
    assert look.total().placed == 100 * PAGE
    assert len(kernel.asked) == 1


def test_a_capacity_is_not_exceeded() -> None:
    kernel = FakeKernel({page: page % 2 for page in range(3000)})
    small = replace(FAR, capacity_bytes=2600 * PAGE)
    look = mover(kernel).look([wanted(0, 3000, small)])
    assert sum(kernel.nodes.values()) <= 2600
    assert look.refused["capacity"] == (3000 - sum(kernel.nodes.values())) * PAGE


def test_moving_is_paced(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = FakeKernel(dict.fromkeys(range(2560), 0))
    program: Any = FakeProgram()
    pages: Any = kernel
    monkeypatch.setattr(time, "monotonic", lambda: program.waited)
    limits = MoveLimits(rate=1 << 20)
    PageMover(program, pages, limits, lambda _: None, lambda _: None).look([wanted(0, 2560, FAR)])
    assert max(kernel.asked) == int((1 << 20) * 0.02) // PAGE
    assert program.waited == pytest.approx(10.0)  # for 10 MiB


def test_moving_stops_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = FakeKernel(dict.fromkeys(range(2560), 0))
    program: Any = FakeProgram()
    pages: Any = kernel
    monkeypatch.setattr(time, "monotonic", lambda: program.waited)
    limits = MoveLimits(rate=1 << 20, deadline=3.0)
    found = PageMover(program, pages, limits, lambda _: None, lambda _: None)
    with pytest.raises(StoppedError, match="time"):
        found.look([wanted(0, 2560, FAR)])
    assert kernel.moved * PAGE == pytest.approx(3 << 20, rel=0.02)
    assert program.waited == pytest.approx(3.0)


def test_the_journal_is_written_before_pages_move() -> None:
    kernel = FakeKernel(dict.fromkeys(range(10), 0) | {20: 1})
    journaled: list[tuple[int, int, int]] = []

    def journal(found: Sequence[tuple[int, int, int]]) -> None:
        assert all(kernel.nodes[address // PAGE] == node for address, _, node in found)
        journaled.extend(found)

    mover(kernel, journal=journal).look([wanted(0, 30, FAR)])
    assert journaled == [(0, 10, 0)]


def test_a_program_that_ends_or_is_replaced_stops_the_look() -> None:
    kernel = FakeKernel(dict.fromkeys(range(10), 0))
    for ended, why in ((True, "program ended"), (False, "program replaced")):
        found = mover(kernel)
        found._program.ended = ended  # type: ignore[attr-defined]
        kernel.current = False
        with pytest.raises(StoppedError, match=why):
            found.look([wanted(0, 10, FAR)])
        assert not found.current.complete
    assert kernel.moved == 0


def test_a_process_that_the_kernel_does_not_find_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = FakeKernel(dict.fromkeys(range(10), 0))
    found = mover(kernel)

    def move(*_: object) -> list[tuple[int, int, int]]:
        found._program.ended = True  # type: ignore[attr-defined]
        raise NativeError("not_found", "process 1 has ended", "", errno.ESRCH)

    monkeypatch.setattr(kernel, "move", move)
    with pytest.raises(StoppedError, match="program ended"):
        found.look([wanted(0, 10, FAR)])


def test_pages_that_something_moves_back_are_counted(migrations: list[int]) -> None:
    kernel = FakeKernel(dict.fromkeys(range(100), 0))
    found = mover(kernel)
    ranges = [wanted(0, 100, FAR)]
    assert found.look(ranges).undone_bytes() == 0
    for page in range(30):
        kernel.nodes[page] = 0
    migrations[0] += 30
    assert found.look(ranges).undone_bytes() == 30 * PAGE
    assert found.look(ranges).undone_bytes() == 0


def test_pages_that_the_program_made_anew_were_not_moved_back(migrations: list[int]) -> None:
    kernel = FakeKernel(dict.fromkeys(range(100), 0))
    found = mover(kernel)
    ranges = [wanted(0, 100, FAR)]
    found.look(ranges)
    for page in range(40):
        kernel.nodes[page] = 0  # freed and touched again between two looks
    look = found.look(ranges)
    assert (look.back, look.undone_bytes()) == (40, 0)
    for page in range(50, 60):
        del kernel.nodes[page]
    found.look(ranges)  # sees that they are gone
    for page in range(50, 60):
        kernel.nodes[page] = 0
    migrations[0] += 10  # of other programs
    assert found.look(ranges).back == 0


def test_it_looks_rarely_at_pages_that_stay_or_are_moved_back() -> None:
    busy, still, undone = Look(), Look(), Look()
    busy.of(wanted(0, 1, FAR)).moved = PAGE
    undone.of(wanted(0, 1, FAR)).moved = PAGE
    undone.back = undone.migrations = 1
    assert _next_interval(2.0, busy) == 1.0
    assert _next_interval(2.0, still) == _next_interval(2.0, undone) == 4.0
    assert _next_interval(0.1, busy) == 0.1
    assert _next_interval(9.0, still) == 10.0


def test_an_interrupted_placement_has_what_was_moved() -> None:
    kernel = FakeKernel(dict.fromkeys(range(5000), 0))
    program: Any = FakeProgram()
    pages: Any = kernel

    def interrupt(_look: object) -> None:
        if kernel.moved > 2000:
            raise KeyboardInterrupt

    placed = Placer(program, pages, MoveLimits(rate=None), progress=interrupt).place(
        [wanted(0, 5000, FAR)]
    )
    assert placed.ended == "interrupted"
    assert not placed.look.complete
    assert placed.moved[1] == kernel.moved * PAGE


# Tiers and settings


def test_tiers_are_nodes() -> None:
    found = node_tiers({"near": "dram", "far": "numa:0,weighted,capacity=1GiB,pages=thp"})
    assert 0 in found["near"].nodes
    assert (found["far"].nodes, found["far"].capacity_bytes) == (frozenset({0}), 1 << 30)
    with pytest.raises(MachineError, match="no memory on NUMA node 63"):
        node_tiers({"far": "numa:0+63"})
    for specification in ("shm:", "file:/tmp"):
        with pytest.raises(BadInputError, match="can only move between nodes"):
            node_tiers({"far": specification})
    assert node_tiers({"one": "numa:0,weights=5"})["one"].weights == {0: 5}
    with pytest.raises(BadInputError, match=r"unknown tier option.*odd.*\(tier far\)"):
        node_tiers({"far": "numa:0,odd"})
    for weights in ("", "5", "5:", "0:3", "5:256", "5:3:1", "a:b"):
        with pytest.raises(BadInputError, match=f"invalid weights '{weights}'"):
            node_tiers({"mixed": f"numa:0+1,weights={weights}"})
    for specification in (
        "dram,weights=1:1",
        "numa:0+0,weights=1:1",
        "nothing:",
        "paced:dram@cxl-asic",
    ):
        with pytest.raises(BadInputError, match=r"\(tier mixed\)"):
            node_tiers({"mixed": specification})
    with pytest.raises(MachineError, match="no NUMA node 99"):
        node_tiers({"far": "numa:99"})


MIXED = NodeTier("mixed", "numa:0+1,weights=5:3", frozenset({0, 1}), weights={0: 5, 1: 3})


def test_blocks_of_an_interleaved_tier_have_nodes_by_their_address() -> None:
    begin, end = 3 * BLOCK + 7 * PAGE, 163 * BLOCK + PAGE
    parts = list(single_node_parts(begin, end, MIXED))
    assert parts[0][0] == begin
    assert parts[-1][1] == end
    assert all(one[1] == other[0] for one, other in pairwise(parts))
    assert all(one[2].nodes != other[2].nodes for one, other in pairwise(parts))
    near = sum(stop - start for start, stop, tier in parts if tier.nodes == {0})
    assert near / (end - begin) == pytest.approx(5 / 8, abs=0.01)
    inner = list(single_node_parts(40 * BLOCK, 80 * BLOCK, MIXED))
    known = {start: tier for start, _, tier in parts}
    assert all(tier == known[start] for start, _, tier in inner[1:])
    assert all(start % BLOCK == 0 for start, _, _ in parts[1:])
    assert list(single_node_parts(begin, end, FAR)) == [(begin, end, FAR)]


def test_pages_move_to_the_nodes_of_their_blocks_and_stay_there() -> None:
    pages = 32 * BLOCK // PAGE
    kernel = FakeKernel(dict.fromkeys(range(pages), 0))
    ranges = [WantedRange(*part, rule=1) for part in single_node_parts(0, pages * PAGE, MIXED)]
    moving = mover(kernel)
    look = moving.look(ranges)
    far = sum(node == 1 for node in kernel.nodes.values())
    assert far == pages * 3 // 8
    assert look.total().moved == far * PAGE
    assert look.total().placed == pages * PAGE
    assert look.by_tier["mixed"] == pages * PAGE
    assert moving.look(ranges).total().moved == 0


def test_a_full_node_of_an_interleaved_tier_does_not_stop_the_other() -> None:
    pages = 8 * BLOCK // PAGE
    kernel = FakeKernel({page: 1 - (page * PAGE // BLOCK) % 2 for page in range(pages)})
    both = replace(MIXED, weights={0: 1, 1: 1})
    kernel.full = {1}
    ranges = [WantedRange(*part, rule=1) for part in single_node_parts(0, pages * PAGE, both)]
    look = mover(kernel).look(ranges)
    assert look.refused["no memory"] == pages * PAGE // 2
    assert all(kernel.nodes[page] == 0 for page in range(BLOCK // PAGE))


def test_settings_that_move_pages(tmp_path: Path) -> None:
    assert moving_settings(tmp_path) == []
    for path, value in ((kernel_moves.BALANCING, "0"), (kernel_moves.DEMOTION, "true")):
        file = tmp_path / path.lstrip("/")
        file.parent.mkdir(parents=True)
        file.write_text(value + "\n")
    (found,) = moving_settings(tmp_path)
    assert (found.path, found.value) == (kernel_moves.DEMOTION, "true")
    (tmp_path / kernel_moves.BALANCING.lstrip("/")).write_text("2\n")
    assert [each.command for each in moving_settings(tmp_path)] == [
        "sysctl kernel.numa_balancing=0",
        "echo false > /sys/kernel/mm/numa/demotion_enabled",
    ]
