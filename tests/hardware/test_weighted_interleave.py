"""Weighted interleave of the kernel, which the model of policies in `nearfar advise` assumes.

Requires Linux 6.9, two nodes with memory, and x86-64 (numbers of system calls).
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections import Counter
from pathlib import Path

import pytest

from nearfar import _native
from nearfar.machine.model import Machine

WEIGHTS = Path("/sys/kernel/mm/mempolicy/weighted_interleave")
_MBIND = 237
_MPOL_WEIGHTED_INTERLEAVE = 6
_PAGE = 4096
_PAGES = 4096


def test_pages_are_divided_by_the_weights(here: Machine) -> None:
    nodes = [node.id for node in here.nodes if node.size_bytes]
    if not WEIGHTS.is_dir():
        pytest.skip(f"no {WEIGHTS}: Linux 6.9 or later")
    if len(nodes) < 2:
        pytest.skip("one node with memory: nothing to interleave")
    weights = {node: int((WEIGHTS / f"node{node}").read_text()) for node in nodes}
    memory = mmap.mmap(-1, _PAGES * _PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    mask = ctypes.c_ulong(sum(1 << node for node in nodes))
    libc = ctypes.CDLL(None, use_errno=True)
    bound = libc.syscall(
        ctypes.c_long(_MBIND),
        ctypes.c_void_p(address),
        ctypes.c_ulong(_PAGES * _PAGE),
        ctypes.c_long(_MPOL_WEIGHTED_INTERLEAVE),
        ctypes.byref(mask),
        ctypes.c_ulong(64),
        ctypes.c_ulong(0),
    )
    assert bound == 0, os.strerror(ctypes.get_errno())
    for page in range(_PAGES):
        memory[page * _PAGE] = 1
    pages = _native.ProcessPages.open(os.getpid())
    runs, _ = pages.locate(address, address + _PAGES * _PAGE, _PAGES)
    found: Counter[int] = Counter()
    for _, count, node in runs:
        found[node] += count
    expected = {node: _PAGES * weight / sum(weights.values()) for node, weight in weights.items()}
    assert found == pytest.approx(expected, rel=0.05, abs=256)
