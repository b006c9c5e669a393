"""``nearfar pool``: pools made by libpmemobj itself, whole, interrupted, damaged, and no pools."""

from __future__ import annotations

import json
import os
import stat
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import damage
import pmdk
from conftest import RunNearfar
from nearfar import _native
from nearfar.errors import from_native

DAMAGED = 300


@pytest.fixture(scope="module")
def pools() -> Iterator[Path]:
    with pmdk.memory_folder() as folder:
        yield folder


@pytest.fixture
def folder() -> Iterator[Path]:
    with pmdk.memory_folder() as folder:
        yield folder


@pytest.fixture(scope="module")
def whole(pools: Path) -> Path:
    path = pools / "whole.pool"
    pmdk.make(path, pmdk.fill_variously, layout="a [b] layout")
    return path


def _interrupt(pool: pmdk.OpenPool) -> None:
    root = pool.root(100_000)
    pool.link(root, 64, pool.alloc(100, 1))
    pool.snapshot(root, 50_000)


@pytest.fixture(scope="module")
def interrupted(pools: Path) -> Path:
    """A pool whose process ended within a transaction: snapshots in the lane and in extensions."""
    path = pools / "interrupted.pool"
    pmdk.make(path, _interrupt, close=False)
    return path


def copy(path: Path, to: Path) -> Path:
    to.write_bytes(path.read_bytes())
    return to


def test_check_and_info_of_a_whole_pool(whole: Path, run_nearfar: RunNearfar) -> None:
    done = run_nearfar("pool", "check", str(whole))
    assert (done.code, done.stderr) == (0, "")
    assert "consistent" in done.stdout
    done = run_nearfar("pool", "info", str(whole))
    assert (done.code, done.stderr) == (0, "")
    assert "a [b] layout" in done.stdout
    reported = json.loads(run_nearfar("pool", "info", str(whole), "--json", "-").stdout)
    assert reported["size_bytes"] == whole.stat().st_size
    assert reported["damage"] == 0


def test_objects_are_those_that_the_library_finds(whole: Path, folder: Path) -> None:
    path, listing = copy(whole, folder / "p"), folder / "listing"
    pmem = pmdk.library()

    def work() -> int:
        pool = pmdk.OpenPool(pmem, pmem.pmemobj_open(os.fsencode(path), None))
        found = [
            [pmem.pmemobj_type_num(oid), pmem.pmemobj_alloc_usable_size(oid)]
            for oid in pool.objects()
        ]
        listing.write_text(json.dumps(found))
        return 0

    assert pmdk.in_child(work) == 0
    listed = json.loads(listing.read_text())
    facts = _native.pool_examine(str(whole))
    ours = {one["type"]: one for one in facts["types"] if one["objects"]}
    assert {t: one["objects"] for t, one in ours.items()} == Counter(t for t, _ in listed)
    for kind, one in ours.items():
        sizes = [size for t, size in listed if t == kind]
        assert (one["smallest_bytes"], one["largest_bytes"]) == (min(sizes), max(sizes))


def test_a_pool_with_an_open_transaction_is_not_damaged(interrupted: Path) -> None:
    facts = _native.pool_examine(str(interrupted))
    assert (facts["kind"], facts["damage"]) == ("object", 0)
    assert facts["logs"]["undo"]["pending"] == 1
    assert facts["logs"]["undo"]["extensions"] >= 1
    found = _native.pool_leaks(str(interrupted))  # the link of the root is snapshotted, then undone
    assert (found["objects"], found["lost"]) == (1, 0)


def test_unlinked_objects_are_leaks(folder: Path, run_nearfar: RunNearfar) -> None:
    path = folder / "leaks.pool"

    def fill(pool: pmdk.OpenPool) -> None:
        root = pool.root(64)
        first, second, lost, below = (pool.alloc(100, kind) for kind in (1, 2, 3, 4))
        pool.link(root, 0, first)
        pool.link(first, 32, second)
        pool.link(lost, 0, below)

    pmdk.make(path, fill)
    done = run_nearfar("pool", "leaks", str(path), "--json", "-")
    reported = json.loads(done.stdout)
    assert (done.code, reported["objects"], reported["lost"]) == (1, 4, 2)
    assert {one["type"]: one["heads"] for one in reported["types"]} == {3: 1, 4: 0}
    assert "conservative" in reported["method"]
    done = run_nearfar("pool", "leaks", str(path))
    assert "2 of 4 objects are lost" in done.stdout


def test_leaks_need_a_root(folder: Path, run_nearfar: RunNearfar) -> None:
    path = folder / "rootless.pool"
    pmdk.make(path, lambda pool: pool.free(pool.alloc(100)))
    run_nearfar("pool", "leaks", str(path)).assert_refused(2, "has no root object")


def test_damage_is_named_with_its_offset(
    whole: Path, folder: Path, run_nearfar: RunNearfar
) -> None:
    image = bytearray(whole.read_bytes())
    image[0x302000 + 1088] = 77  # the type of the first chunk
    path = folder / "damaged.pool"
    path.write_bytes(image)
    done = run_nearfar("pool", "check", str(path))
    assert done.code == 1
    assert "a chunk has type 77" in done.stdout
    assert f"{0x302000 + 1088:#x}" in done.stdout
    run_nearfar("pool", "leaks", str(path)).assert_refused(1, "a chunk has type 77")
    assert run_nearfar("pool", "info", str(path)).code == 1
    assert path.read_bytes() == image


def check_damaged(bases: list[bytes], seeds: range, folder: Path) -> Counter[tuple[bool, str]]:
    """(refused here, "opens"|"refuses"|"crashes" with libpmemobj) of pools with random damage."""
    outcomes: Counter[tuple[bool, str]] = Counter()
    path = folder / "damaged.pool"
    for seed in seeds:
        image = damage.damaged(bases[seed % len(bases)], seed)
        path.write_bytes(image)
        facts = _native.pool_examine(str(path))
        assert path.read_bytes() == image, f"seed {seed}: written to"
        refused = facts["damage"] > 0 or facts["kind"] != "object"
        opened = ("opens", "refuses")[code] if (code := pmdk.opens(path)) < 2 else "crashes"
        assert refused or opened == "opens", f"seed {seed}: libpmemobj {opened}, check passed"
        outcomes[refused, opened] += 1
    return outcomes


def test_no_damaged_pool_passes_that_fails_to_open(
    whole: Path, interrupted: Path, folder: Path
) -> None:
    bases = [whole.read_bytes(), interrupted.read_bytes()]
    outcomes = check_damaged(bases, range(30), folder)
    assert outcomes[True, "refuses"] > 5  # the damage does hurt


@pytest.mark.long
def test_three_hundred_damaged_pools(whole: Path, interrupted: Path, folder: Path) -> None:
    bases = [whole.read_bytes(), interrupted.read_bytes()]
    outcomes = check_damaged(bases, range(DAMAGED), folder)
    print(dict(outcomes))
    assert outcomes.total() == DAMAGED


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "an empty file"),
        (b"just a text\n" * 1000, "not a pool"),
        (b"PMEMLOG\0" + bytes(3 << 20), "libpmemlog"),
        (b"PMEMBLK\0" + bytes(3 << 20), "libpmemblk"),
        (b"PMEMPOOLSET\n100M /mnt/a\n", "a pool set"),
    ],
)
@pytest.mark.parametrize("verb", ["info", "check", "leaks"])
def test_files_that_are_not_pools_of_libpmemobj(
    content: bytes, what: str, verb: str, folder: Path, run_nearfar: RunNearfar
) -> None:
    path = folder / "file"
    path.write_bytes(content)
    done = run_nearfar("pool", verb, str(path))
    done.assert_refused(2, what)


@pytest.mark.parametrize("verb", ["info", "check", "leaks", "shred"])
def test_paths_that_are_no_files(verb: str, folder: Path, run_nearfar: RunNearfar) -> None:
    sure = ["--yes"] if verb == "shred" else []
    said = "Is a directory" if verb == "shred" else "is a directory"
    run_nearfar("pool", verb, str(folder), *sure).assert_refused(2, said)
    absent = run_nearfar("pool", verb, str(folder / "missing"), *sure)
    absent.assert_refused(2, "No such file or directory")
    fifo = folder / "fifo"
    os.mkfifo(fifo)
    run_nearfar("pool", verb, str(fifo), *sure, timeout=120).assert_refused(2, f"{fifo} is not a ")


def test_a_file_that_may_not_be_read(whole: Path, folder: Path) -> None:
    path = copy(whole, folder / "secret.pool")
    path.chmod(0)
    folder.chmod(0o755)

    def work() -> int:
        if os.geteuid() == 0:
            os.seteuid(65534)
        try:
            _native.pool_examine(str(path))
        except _native.NativeError as error:
            return int(from_native(error).exit_code)
        return 0

    assert pmdk.in_child(work) == 3


def test_shred_asks_and_overwrites(whole: Path, folder: Path, run_nearfar: RunNearfar) -> None:
    path = copy(whole, folder / "secret.pool")
    before = path.read_bytes()
    run_nearfar("pool", "shred", str(path)).assert_refused(
        2, "would be overwritten, and there is no terminal for a confirmation"
    )
    assert path.read_bytes() == before
    done = run_nearfar("pool", "shred", str(path), "--yes", "--json", "-")
    assert (done.code, done.stderr) == (0, "")
    reported = json.loads(done.stdout)
    assert reported["verified_bytes"] == len(before)
    assert reported["not_reached"]
    after = path.read_bytes()
    assert len(after) == len(before)
    for at in range(0, len(after), 4096):  # no page kept what it was, and none is plain
        page = after[at : at + 4096]
        assert page != before[at : at + 4096]
        assert len(set(page)) > 200
    again = run_nearfar("pool", "shred", str(path), "--yes")
    again.assert_refused(2, "is not a pool")


def test_shred_does_not_modify_other_files(folder: Path, run_nearfar: RunNearfar) -> None:
    path = folder / "letter"
    path.write_text("dear reader\n")
    run_nearfar("pool", "shred", str(path), "--yes").assert_refused(2, "letter is not a pool")
    assert path.read_text() == "dear reader\n"


def test_shred_refuses_a_pool_in_use(whole: Path, folder: Path, run_nearfar: RunNearfar) -> None:
    path = copy(whole, folder / "used.pool")
    with pmdk.in_use(path):
        done = run_nearfar("pool", "shred", str(path), "--yes")
    done.assert_refused(3, "in use")
    assert stat.S_ISREG(path.stat().st_mode)
    assert pmdk.opens(path) == 0


def test_a_pool_cut_while_it_is_read_is_damage(whole: Path, folder: Path) -> None:
    path = copy(whole, folder / "cut.pool")
    size = path.stat().st_size
    stop, go = os.pipe()
    child = os.fork()
    if child == 0:  # cuts and restores the file until it is stopped
        os.close(go)
        os.set_blocking(stop, False)
        while True:
            os.truncate(path, 5 << 20)
            os.truncate(path, size)
            try:
                os.read(stop, 1)
                os._exit(0)
            except BlockingIOError:
                pass
    for _ in range(30):
        _native.pool_examine(str(path))  # by pread: no signal, whatever it finds
    os.close(go)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
