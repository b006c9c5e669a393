"""Pools made and opened by libpmemobj itself, through its C interface, in processes of their own.

nearfar's inspector never links the library; these tests are what compares the two.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

_CRASHED = 70  #: added to a signal's number, so that it differs from an exit code


class Oid(ctypes.Structure):
    """A persistent pointer as the library has it."""

    _fields_ = (("pool", ctypes.c_uint64), ("offset", ctypes.c_uint64))


class _Class(ctypes.Structure):
    """``struct pobj_alloc_class_desc``."""

    _fields_ = (
        ("unit_size", ctypes.c_size_t),
        ("alignment", ctypes.c_size_t),
        ("units_per_block", ctypes.c_uint),
        ("header", ctypes.c_int),  # 0 legacy, 1 compact, 2 none
        ("id", ctypes.c_uint),
    )


def library() -> Any:
    """libpmemobj with the signatures that are used here, or the test is skipped."""
    try:
        pmem = ctypes.CDLL("libpmemobj.so.1", use_errno=True)
    except OSError as error:
        pytest.skip(f"libpmemobj is not installed: {error}")
    pointer, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64
    pmem.pmemobj_create.restype = pointer
    pmem.pmemobj_create.argtypes = [ctypes.c_char_p, ctypes.c_char_p, size, ctypes.c_uint]
    pmem.pmemobj_open.restype = pointer
    pmem.pmemobj_open.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
    pmem.pmemobj_close.argtypes = [pointer]
    pmem.pmemobj_root.restype = Oid
    pmem.pmemobj_root.argtypes = [pointer, size]
    pmem.pmemobj_xalloc.argtypes = [
        pointer,
        ctypes.POINTER(Oid),
        size,
        number,
        number,
        pointer,
        pointer,
    ]
    pmem.pmemobj_free.argtypes = [ctypes.POINTER(Oid)]
    pmem.pmemobj_first.restype = Oid
    pmem.pmemobj_first.argtypes = [pointer]
    pmem.pmemobj_next.restype = Oid
    pmem.pmemobj_next.argtypes = [Oid]
    pmem.pmemobj_direct.restype = pointer
    pmem.pmemobj_ctl_set.argtypes = [pointer, ctypes.c_char_p, pointer]
    pmem.pmemobj_tx_begin.argtypes = [pointer, pointer, ctypes.c_int]
    pmem.pmemobj_tx_add_range.argtypes = [Oid, number, size]
    pmem.pmemobj_type_num.restype = number
    pmem.pmemobj_type_num.argtypes = [Oid]
    pmem.pmemobj_alloc_usable_size.restype = size
    pmem.pmemobj_alloc_usable_size.argtypes = [Oid]
    pmem.pmemobj_direct.argtypes = [Oid]
    return pmem


class OpenPool:
    """A pool in this process; used inside ``in_child``."""

    def __init__(self, pmem: Any, handle: int) -> None:
        self.pmem = pmem
        self.handle = handle

    def alloc(self, size: int, type_number: int = 0, class_id: int = 0) -> Oid:
        """Allocate; ``class_id`` from ``new_class``."""
        oid = Oid()
        code = self.pmem.pmemobj_xalloc(
            self.handle, ctypes.byref(oid), size, type_number, class_id << 48, None, None
        )
        assert code == 0, os.strerror(ctypes.get_errno())
        return oid

    def free(self, oid: Oid) -> None:
        self.pmem.pmemobj_free(ctypes.byref(oid))

    def root(self, size: int) -> Oid:
        oid: Oid = self.pmem.pmemobj_root(self.handle, size)
        return oid

    def new_class(self, unit: int, header: int, alignment: int = 0, units: int = 500) -> int:
        """Register an allocation class: header 0 legacy, 1 compact, 2 none."""
        made = _Class(unit, alignment, units, header, 0)
        name = b"heap.alloc_class.new.desc"
        assert self.pmem.pmemobj_ctl_set(self.handle, name, ctypes.byref(made)) == 0
        return int(made.id)

    def link(self, holder: Oid, at: int, target: Oid) -> None:
        """Store a PMEMoid into an object."""
        ctypes.memmove(self.pmem.pmemobj_direct(holder) + at, ctypes.byref(target), 16)

    def snapshot(self, oid: Oid, size: int) -> None:
        """Begin a transaction, snapshot and change a range, and leave it unfinished."""
        assert self.pmem.pmemobj_tx_begin(self.handle, None, 0) == 0
        assert self.pmem.pmemobj_tx_add_range(oid, 0, size) == 0
        ctypes.memset(self.pmem.pmemobj_direct(oid), 0xEE, size)

    def objects(self) -> Iterator[Oid]:
        oid = self.pmem.pmemobj_first(self.handle)
        while oid.offset:
            yield oid
            oid = self.pmem.pmemobj_next(oid)

    def close(self) -> None:
        self.pmem.pmemobj_close(self.handle)


def in_child(work: Callable[[], int], timeout_s: int = 20) -> int:
    """Run ``work`` in a fork; its exit code, or ``_CRASHED`` + signal."""
    child = os.fork()
    if child == 0:
        import faulthandler
        import signal

        faulthandler.disable()  # a crash is an outcome here, not news
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(timeout_s)  # a hang ends as a crash by SIGALRM
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            os._exit(work())
        except BaseException:
            os._exit(99)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else _CRASHED - code


def make(
    path: Path,
    fill: Callable[[OpenPool], None],
    size: int = 16 << 20,
    *,
    close: bool = True,
    layout: str = "test",
) -> None:
    """A new pool, filled by ``fill``; without ``close`` its process ends as if killed."""
    pmem = library()

    def work() -> int:
        handle = pmem.pmemobj_create(os.fsencode(path), layout.encode(), size, 0o600)
        if not handle:
            return 1
        pool = OpenPool(pmem, handle)
        fill(pool)
        if close:
            pool.close()
        return 0

    assert in_child(work, timeout_s=60) == 0


def opens(path: Path) -> int:
    """0 if libpmemobj opens, walks and closes the pool; 1 if it refuses; more if it crashes."""
    pmem = library()

    def work() -> int:
        handle = pmem.pmemobj_open(os.fsencode(path), None)
        if not handle:
            return 1
        pmem.pmemobj_close(handle)
        return 0

    return in_child(work, timeout_s=2)


@contextmanager
def memory_folder() -> Iterator[Path]:
    """A folder in memory if there is one: on a disk libpmemobj waits for each of its stores."""
    shm = Path("/dev/shm")
    with TemporaryDirectory(dir=shm if os.access(shm, os.W_OK) else None) as name:
        yield Path(name)


@contextmanager
def in_use(path: Path) -> Iterator[None]:
    """Another process has the pool open for the time of the ``with``."""
    pmem = library()
    opened, reported = os.pipe()
    wait, finish = os.pipe()
    child = os.fork()
    if child == 0:
        handle = pmem.pmemobj_open(os.fsencode(path), None)
        os.write(reported, b"1" if handle else b"0")
        os.close(finish)
        os.read(wait, 1)
        os._exit(0)
    assert os.read(opened, 1) == b"1"
    yield
    for descriptor in (opened, reported, wait, finish):
        os.close(descriptor)
    os.waitpid(child, 0)


def fill_variously(pool: OpenPool) -> None:
    """Objects of all header kinds and sizes, linked and lost, freed ones between them."""
    root = pool.root(4096)
    classes = [pool.new_class(256, 0), pool.new_class(96, 2), pool.new_class(192, 1, 64)]
    kept = [pool.alloc(40 + i % 7 * 100, i % 5) for i in range(1500)]
    kept += [pool.alloc(64, 7, one) for one in classes for _ in range(60)]
    kept += [pool.alloc(size, 9) for size in (300_000, 600_000, 2_500_000)]
    for oid in kept[::9]:
        pool.free(oid)
    for i, oid in enumerate(o for o in kept[:200] if o.offset):
        pool.link(root, 16 * i, oid)
