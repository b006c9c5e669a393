"""libhmalloc needs libc and nothing else: its ELF files say so."""

from __future__ import annotations

import re
import subprocess

import pytest

from hmalloc_build import LIBRARIES, PRELOAD, SHARED

#: Of the tools, and looked for only where a sanitizer or a heap profiler is.
_OPTIONAL = {
    "_ITM_deregisterTMCloneTable",
    "_ITM_registerTMCloneTable",
    "__gmon_start__",
    "__tsan_init",
    "__cxa_finalize",
    "hm_on_allocate",
    "hm_on_free",
}
_OF_GLIBC = {
    "malloc",
    "free",
    "calloc",
    "realloc",
    "reallocarray",
    "aligned_alloc",
    "memalign",
    "posix_memalign",
    "valloc",
    "pvalloc",
    "malloc_usable_size",
    "cfree",
    "free_sized",
    "free_aligned_sized",
    "malloc_good_size",
    "malloc_info",
    "malloc_stats",
    "malloc_trim",
    "mallinfo2",
    "reallocarr",
}


def _run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("library", [SHARED, PRELOAD], ids=["linked", "preloaded"])
def test_needs_libc_alone(library: object) -> None:
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", _run("readelf", "-d", str(library)))
    assert set(needed) <= {"libc.so.6", "ld-linux-x86-64.so.2"}
    undefined = re.findall(r" [Uw] (\S+)", _run("nm", "-D", "--undefined-only", str(library)))
    assert {name for name in undefined if "@GLIBC_" not in name} <= _OPTIONAL
    assert undefined


def test_static_library_has_no_cxx_runtime() -> None:
    undefined = set(re.findall(r" U (\S+)", _run("nm", str(LIBRARIES / "libhmalloc.a"))))
    runtime = {name for name in undefined if re.match(r"_ZS|_ZNS|_ZNKS|__cxa|__gxx|_Unwind", name)}
    assert runtime == set()


def test_exported_symbols() -> None:
    exported = set(re.findall(r" [TDBW] (\w+)", _run("nm", "-D", "--defined-only", str(SHARED))))
    assert exported
    assert all(re.fullmatch(r"hm_\w+|hmalloc|memkind\w*", name) for name in exported), exported
    replaced = set(re.findall(r" [TW] (\w+)", _run("nm", "-D", "--defined-only", str(PRELOAD))))
    assert replaced >= _OF_GLIBC | {
        "_Znwm",
        "_ZdlPv",
        "_ZnamSt11align_val_t",
        "_ZdlPvmSt11align_val_t",
    }


@pytest.mark.parametrize("library", [SHARED, PRELOAD], ids=["linked", "preloaded"])
def test_unused_parts_of_the_allocator_take_no_memory(library: object) -> None:
    """What is zero at the start is in .bss, so a process has only the pages that it uses."""
    sizes = {
        name: int(size, 16)
        for name, size in re.findall(
            r"\] (\.\w+) +\w+ +[0-9a-f]+ [0-9a-f]+ ([0-9a-f]+)",
            _run("readelf", "-SW", str(library)),
        )
    }
    assert sizes[".bss"] > 100_000
    assert sizes[".data"] < 12_000
