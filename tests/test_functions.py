"""Functions of code without debug information, by symbols."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from nearfar.place.labels import labels_of
from nearfar.place.sites import Frame, Site
from nearfar.process.functions import Function, functions_at, without_template_arguments

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

LIBRARY = """\
#include <cstdlib>
namespace store {
template <class T> struct Box { T* value; };
static __attribute__((noinline)) void* hidden(int n) { return std::malloc(n + 1); }
__attribute__((noinline, visibility("default"))) void fill(Box<int>& box, int n) {
  box.value = static_cast<int*>(hidden(n));
}
template __attribute__((visibility("default"))) struct Box<int>;
}
extern "C" __attribute__((visibility("default"))) void open_store(int n) {
  store::Box<int> box;
  store::fill(box, n);
  __asm__ volatile("" : : "r"(box.value) : "memory");
}
extern "C" __attribute__((visibility("default"), alias("open_store"))) void _open_store_1(int n);
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, int]]:
    """A stripped library, and the addresses of all its functions."""
    folder = tmp_path_factory.mktemp("library")
    (folder / "store.cpp").write_text(LIBRARY)
    made = folder / "libstore.so"
    command = ["g++", "-O1", "-shared", "-fPIC", "store.cpp", "-o", str(made)]
    subprocess.run(command, cwd=folder, check=True)
    names = subprocess.run(["nm", made], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in names.splitlines()]
    subprocess.run(["strip", made], check=True)
    return made, {row[2]: int(row[0], 16) for row in rows if len(row) == 3}


def heap(number: int, *frames: Frame) -> Site:
    return Site(number, "heap", frames, 1, 64, 64, 0, 0, 1.0)


@needs_compiler
def test_exported_functions_of_a_stripped_library_are_known(
    library: tuple[Path, dict[str, int]],
) -> None:
    path, address = library
    start, filled = address["open_store"], address["_ZN5store4fillERNS_3BoxIiEEi"]
    found = functions_at(path, [start, start + 5, filled + 1])
    assert found[start] == Function("open_store", 0)  # not its alias with an underscore
    assert found[start + 5] == Function("open_store", 5)
    assert found[filled + 1] == Function("store::fill(store::Box<int>&, int)", 1)
    plain = functions_at(path, [filled], parameters=False)[filled].name
    assert plain == "store::fill"


@needs_compiler
def test_a_function_without_a_symbol_is_not_named_by_its_neighbor(
    library: tuple[Path, dict[str, int]],
) -> None:
    path, address = library
    (hidden,) = [at for name, at in address.items() if "hidden" in name]
    assert functions_at(path, [hidden + 1, 1 << 40]) == {}


@needs_compiler
def test_sites_of_libraries_without_debug_information_have_functions(
    library: tuple[Path, dict[str, int]],
) -> None:
    path, address = library
    opened, filled = address["open_store"], address["_ZN5store4fillERNS_3BoxIiEEi"]
    (hidden,) = [at for name, at in address.items() if "hidden" in name]
    inner, outer = (Frame(str(path), "", at + 8) for at in (filled, opened))
    other = Frame(str(path), "", opened + 9)
    unnamed = Frame(str(path), "", hidden + 8)
    labels = labels_of([heap(0, inner, outer), heap(1, inner, other), heap(2, unnamed)])
    assert labels.at == {
        0: "open_store+0x8 (libstore.so)>store::fill+0x8 (libstore.so)",
        1: "open_store+0x9 (libstore.so)>store::fill+0x8 (libstore.so)",
        2: f"libstore.so+{hidden + 8:#x}",
    }
    assert labels.functions == {0: [], 1: [], 2: []}
    assert labels_of([heap(0, inner)]).at == {0: "store::fill+0x8 (libstore.so)"}


def test_damaged_files_have_no_functions(tmp_path: Path) -> None:
    whole = Path("/bin/true").read_bytes()
    file = tmp_path / "damaged"
    assert functions_at(file, [0]) == {}
    for content in (b"", b"\x7fELF\x02", whole[:100], whole[:-100], bytes(4096)):
        file.write_bytes(content)
        assert functions_at(file, [0x1000]) == {}
    for at in range(40, 64):
        file.write_bytes(whole[:at] + b"\xff" + whole[at + 1 :])
        assert all(each.name for each in functions_at(file, range(0, 1 << 16, 64)).values())


def test_template_arguments_are_left_out() -> None:
    assert without_template_arguments("std::vector<int, A<B>>::push_back") == (
        "std::vector::push_back"
    )
    assert without_template_arguments("operator<<") == "operator<<"
