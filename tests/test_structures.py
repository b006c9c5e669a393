"""Persistent structures through the bindings, against a dict, a sorted set and a list.

Closing and opening again, and a child killed (kill -9) while it works, are rules like any other:
what the child acknowledged through its pipe is there, and at most the one operation after it.
"""

import contextlib
import os
import pickle
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import pmdk
from conftest import RunNearfar
from nearfar import _native
from nearfar._native import NativeError
from structure_models import MACHINES, Operation, contents

pytestmark = pytest.mark.skipif(
    not hasattr(_native, "WordMap"), reason="libpmemobj is not installed"
)

POOL_BYTES = 32 << 20
#: Where pools lie: DRAM that plays persistent memory, or a disk. A process has either, not both.
ON_DISK = os.environ.get("NEARFAR_TEST_POOLS") == "disk" or not Path("/dev/shm").is_dir()


def killed_child(opened: Callable[[], Any], steps: list[Operation], acknowledged: int) -> int:
    """Run steps in a child, kill it after so many acknowledgments; return the number it had."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            structure = opened()
            for number, (name, arguments) in enumerate(steps):
                getattr(structure, name)(*arguments)
                os.write(writer, struct.pack("<I", number + 1))
            signal.pause()
        finally:
            os._exit(1)
    os.close(writer)
    count = 0
    with os.fdopen(reader, "rb") as acks:
        while count < acknowledged:
            (count,) = struct.unpack("<I", acks.read(4))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        while last := acks.read(4):
            (count,) = struct.unpack("<I", last)
    return count


def pool_folder() -> tuple[tempfile.TemporaryDirectory[str], str]:
    """A folder for a pool, and the tier of a pool in it."""
    folder = tempfile.TemporaryDirectory(dir=None if ON_DISK else "/dev/shm")
    return folder, f"{'file' if ON_DISK else 'shm'}:{folder.name}/pool"


def machine(kind: str, model: type, steps: st.SearchStrategy[Operation]) -> type:
    """A state machine for the structure of this name in ``_native``."""
    atomic = steps.filter(lambda step: step[0] != "bulk_load")  # a killed load may leave any part

    class Machine(RuleBasedStateMachine):
        structure: Any = None

        @initialize()
        def create(self) -> None:
            self.folder, place = pool_folder()
            self.opened: Callable[[], Any] = lambda: getattr(_native, kind).open(place)
            self.structure = getattr(_native, kind).create(place, POOL_BYTES)
            self.model = model()

        @rule(step=steps)
        def operate(self, step: Operation) -> None:
            name, arguments = step
            assert getattr(self.structure, name)(*arguments) == getattr(self.model, name)(
                *arguments
            )

        @rule()
        def reopen(self) -> None:
            self.structure.close()
            self.structure = self.opened()

        @rule(steps=st.lists(atomic, min_size=1, max_size=30), data=st.data())
        def kill(self, steps: list[Operation], data: st.DataObject) -> None:
            self.structure.close()
            done = killed_child(self.opened, steps, data.draw(st.integers(0, len(steps))))
            for name, arguments in steps[:done]:
                getattr(self.model, name)(*arguments)
            self.structure = self.opened()
            if done < len(steps) and contents(self.structure) != self.model.contents():
                name, arguments = steps[done]
                getattr(self.model, name)(*arguments)

        @precondition(lambda self: self.structure is not None)
        @invariant()
        def alike(self) -> None:
            self.structure.verify()
            assert contents(self.structure) == self.model.contents()
            assert self.structure.size() == len(self.model)

        def teardown(self) -> None:
            if self.structure is not None:
                self.structure.close()
                self.folder.cleanup()

    return Machine


@pytest.mark.parametrize("kind", MACHINES)
def test_structure_is_its_model(kind: str) -> None:
    model, steps = MACHINES[kind]
    run_state_machine_as_test(
        machine(kind, model, steps),
        settings=settings(
            max_examples=2 if ON_DISK else 8,
            stateful_step_count=10 if ON_DISK else 20,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.fixture
def place() -> Iterator[str]:
    folder, tier = pool_folder()
    with folder:
        yield tier


@pytest.mark.skipif(ON_DISK, reason="all tests here are on the disk")
def test_on_a_disk_structures_are_their_models_too() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            __file__,
            "-k",
            "is_its_model or (refused and WordList)",
        ],
        env={**os.environ, "NEARFAR_TEST_POOLS": "disk"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]


#: Numbers go down from here, so that a sorted structure takes each at its front.
TOP = 2**40


def entry(kind: str, number: int) -> Operation:
    """The operation that puts a number into a structure."""
    if kind == "WordQueue":
        return "push", (number,)
    key = TOP - number
    return "insert", (key, number) if "Map" in kind else (key,)


def expected(kind: str, count: int) -> Any:
    """The contents when so many have been put in."""
    numbers = range(count)
    if kind == "WordQueue":
        return list(numbers)
    pairs = sorted((TOP - number, number) for number in numbers)
    return pairs if "Map" in kind else [key for key, _ in pairs]


def fill(structure: Any, kind: str) -> int:
    """Puts numbers into a structure until it refuses; how many it took."""
    taken = 0
    with contextlib.suppress(NativeError):
        while True:
            name, arguments = entry(kind, taken)
            getattr(structure, name)(*arguments)
            taken += 1
    with pytest.raises(NativeError, match="no_space"):
        getattr(structure, name)(*arguments)
    return taken


@pytest.mark.parametrize("kind", [kind for kind in MACHINES if kind != "BytesMap"])
def test_full_pool_is_an_error_and_leaves_all_whole(kind: str, place: str) -> None:
    structure = getattr(_native, kind).create(place, 16 << 20)
    taken = fill(structure, kind)
    assert taken > 5_000
    for _ in range(2):
        structure.verify()
        assert structure.size() == taken
        assert contents(structure) == expected(kind, taken)
        structure.close()
        structure = getattr(_native, kind).open(place)
    if kind == "WordQueue":
        assert structure.pop() == 0
        structure.push(taken)
    else:
        name, arguments = entry(kind, 0)
        assert structure.remove(arguments[0]) in (True, 0)  # or the value that was there
        assert getattr(structure, name)(*arguments)
    structure.verify()
    assert structure.size() == taken
    structure.close()


def test_full_pool_is_an_error_and_leaves_the_records_whole(place: str) -> None:
    full_map = _native.BytesMap.create(place, POOL_BYTES)
    value = bytes(range(256)) * 16
    stored = 0
    with contextlib.suppress(NativeError):
        while full_map.insert(stored.to_bytes(8), value):
            stored += 1
    with pytest.raises(NativeError, match="no_space"):
        full_map.insert(stored.to_bytes(8), value)
    assert stored > 500
    for _ in range(2):
        full_map.verify()
        assert full_map.size() == stored
        assert all(full_map.get(i.to_bytes(8)) == value for i in range(stored))
        full_map.close()
        full_map = _native.BytesMap.open(place)
    assert full_map.remove((0).to_bytes(8))
    assert full_map.insert((0).to_bytes(8), value)
    full_map.close()


def refusal(kind: str, place: str) -> tuple[str, str]:
    """Code and sentence of the error when a structure is opened."""
    with pytest.raises(NativeError) as refused:
        getattr(_native, kind).open(place)
    code, what = refused.value.args[:2]
    return code, what


def path_of(place: str) -> Path:
    return Path(place.partition(":")[2])


def test_many_keys_that_are_bytes_are_looked_up_as_each_by_itself(place: str) -> None:
    structure = _native.BytesMap.create(place, POOL_BYTES)
    keys = [bytes([number % 251]) * (number % 40) for number in range(500)]
    for key in keys[::2]:
        structure.put(key, key)
    assert structure.get_many(keys) == [structure.get(key) for key in keys]
    structure.close()


@pytest.mark.parametrize("kind", MACHINES)
def test_pool_of_another_structure_is_refused(kind: str, place: str) -> None:
    other = "WordList" if kind != "WordList" else "WordMap"
    getattr(_native, other).create(place, 8 << 20).close()
    code, what = refusal(kind, place)
    assert code == "bad_input"
    assert "another type" in what
    assert other in what
    with pytest.raises(NativeError, match="exists"):
        getattr(_native, kind).create(place, 8 << 20)


@pytest.mark.parametrize("kind", MACHINES)
def test_pool_of_another_version_is_refused(kind: str, place: str) -> None:
    pmdk.make(path_of(place), lambda _: None, 8 << 20, layout=f"{kind};version=2")
    code, what = refusal(kind, place)
    assert code == "bad_input"
    assert f"version 2 of layout '{kind}', and this program knows version 1" in what


@pytest.mark.parametrize("kind", MACHINES)
def test_pool_that_was_cut_short_is_refused(kind: str, place: str, run_nearfar: RunNearfar) -> None:
    getattr(_native, kind).create(place, 9 << 20).close()
    os.truncate(path_of(place), 8 << 20)
    code, what = refusal(kind, place)
    assert code == "bad_input"
    assert f"cut short: it has {8 << 20} bytes" in what
    if kind == "WordMap":  # the inspector knows no kinds
        checked = run_nearfar("pool", "check", str(path_of(place)))
        assert checked.code == 1
        assert "but the file ends after" in checked.stdout


@pytest.mark.parametrize("kind", MACHINES)
def test_second_process_is_refused(kind: str, place: str) -> None:
    structure = getattr(_native, kind).create(place, 8 << 20)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            getattr(_native, kind).open(place)
        except NativeError as error:
            os.write(writer, pickle.dumps(error.args[:2]))
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader, "rb") as answer:
        code, what = pickle.loads(answer.read())
    assert code == "unsupported"
    assert "already open" in what
    structure.close()


@pytest.mark.skipif(shutil.which("pmempool") is None, reason="pmempool is not installed")
@pytest.mark.parametrize("kind", MACHINES)
def test_pmempool_accepts_the_pools(kind: str, place: str) -> None:
    structure = getattr(_native, kind).create(place, POOL_BYTES)
    for number in range(100):
        name, arguments = entry(kind, number)
        if kind == "BytesMap":
            arguments = (str(number).encode(), bytes(3000))
        getattr(structure, name)(*arguments)
    structure.close()
    for verb in ("check", "info"):
        done = subprocess.run(
            ["pmempool", verb, path_of(place)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done
