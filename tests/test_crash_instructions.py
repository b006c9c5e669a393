"""Flushes in assembly are seen wherever they are; those that are not are a warning."""

from __future__ import annotations

from pathlib import Path

import pytest

from compiling import compile_c
from conftest import RunNearfar
from crashing import INCLUDE, PROGRAMS, document, linted, needs_libpmem

pytestmark = needs_libpmem

TEXT = (PROGRAMS / "late_library.c").read_text()


@pytest.mark.parametrize("missing", [False, True])
def test_flushes_of_a_library_that_is_loaded_late(
    missing: bool, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    flags = ["-shared", "-fPIC", *(["-DMISSING"] if missing else [])]
    library = compile_c(tmp_path, "late.so", TEXT, *flags)
    host = compile_c(tmp_path, "host", TEXT, "-DHOST", "-ldl")
    found = linted(run_nearfar, str(host), str(library), str(tmp_path / "pool"))
    assert found["warnings"] == []
    if not missing:
        assert (found["verdict"], found["findings"]) == ("clean", [])
        return
    (finding,) = found["findings"]
    line = 1 + TEXT[: TEXT.index("/* STORE */")].count("\n")
    assert (finding["rule"], finding["times"]) == ("unflushed", 1)
    assert finding["place"].endswith(f"late.so.c:{line}")


RELOADED = (PROGRAMS / "reloaded_library.c").read_text()
LINE_OF_STORE = 1 + RELOADED[: RELOADED.index("/* STORE */")].count("\n")


def plug_in(folder: Path, name: str, *flags: str) -> Path:
    return compile_c(folder, f"{name}.so", RELOADED, "-shared", "-fPIC", *flags)


def test_flushes_of_libraries_at_the_address_of_one_that_was_unloaded(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    host = compile_c(tmp_path, "host", RELOADED, "-DHOST", "-ldl")
    first, second = plug_in(tmp_path, "first"), plug_in(tmp_path, "second")
    wrong = plug_in(tmp_path, "wrong", "-DMISSING")
    for libraries in ((first, first), (first, second, first), (first, second, wrong, wrong)):
        (tmp_path / "pool").unlink(missing_ok=True)
        command = (str(host), str(tmp_path / "pool"), *map(str, libraries))
        found = linted(run_nearfar, *command)
        assert found["warnings"] == []
        if wrong not in libraries:
            assert (found["verdict"], found["findings"]) == ("clean", [])
            continue
        (finding,) = found["findings"]
        assert (finding["rule"], finding["times"]) == ("unflushed", 2)
        assert finding["place"].endswith(f"wrong.so.c:{LINE_OF_STORE}")


def test_flushes_of_libraries_in_other_namespaces(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    host = compile_c(tmp_path, "host", RELOADED, "-DHOST", "-DAPART", "-ldl")
    right, wrong = plug_in(tmp_path, "right"), plug_in(tmp_path, "wrong", "-DMISSING")
    command = (str(host), str(tmp_path / "pool"), str(right), str(wrong), str(right))
    found = linted(run_nearfar, *command)
    (finding,) = found["findings"]
    assert (found["warnings"], finding["times"]) == ([], 1)
    assert finding["place"].endswith(f"wrong.so.c:{LINE_OF_STORE}")


@pytest.mark.parametrize("end", ["-DKEEP", "-DUNMAP"])
@pytest.mark.parametrize("flushes", [False, True])
def test_stores_of_generated_code(
    flushes: bool, end: str, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    text = (PROGRAMS / "generated_code.c").read_text()
    program = compile_c(tmp_path, "generated", text, end, *(["-DFLUSH"] if flushes else []))
    found = linted(run_nearfar, str(program), str(tmp_path / "pool"))
    (finding,) = found["findings"]
    assert finding["place"] == "[generated code]"
    assert finding["times"] == (2 if flushes else 1)
    assert found["verdict"] == ("inconclusive" if flushes else "violation")
    assert [line for line in found["warnings"] if "another thread" in line] == []
    assert any("of generated code were not seen" in line for line in found["warnings"]) == flushes


def test_state_of_the_processor_and_zeros_over_zeros(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    program = compile_c(tmp_path, "state", (PROGRAMS / "saved_state.c").read_text())
    found = linted(run_nearfar, str(program), str(tmp_path / "pool"))
    assert (found["verdict"], found["warnings"]) == ("clean", [])
    # What of the state has changed is known, and not what was stored as it was.
    assert {each["rule"] for each in found["findings"]} <= {"needless_flush"}
    places = [(each["place"], *each["inlined_into"]) for each in found["findings"]]
    assert not any(place.endswith("state.c:26") for way in places for place in way)


def test_a_store_of_a_library_whose_path_was_relative(
    run_nearfar: RunNearfar, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = compile_c(tmp_path, "host", RELOADED, "-DHOST", "-DRELATIVE", "-ldl")
    plug_in(tmp_path, "wrong", "-DMISSING")
    monkeypatch.chdir(tmp_path)
    command = ("crash", "lint", "--json", "-", "--", str(host), str(tmp_path / "pool"))
    found = document(run_nearfar(*command, "./wrong.so"))
    (finding,) = found["findings"]
    assert finding["place"].endswith(f"wrong.so.c:{LINE_OF_STORE}")


#: The kernel's code stores for the program.
CLOCK = """
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv) {
  int fd = open(argv[argc - 1], O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, 4096) != 0) return 2;
  time_t *pool = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  time(pool);
  return 0;
}
"""


def test_a_store_of_the_vdso_is_the_call_of_the_program(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    program = compile_c(tmp_path, "clock", CLOCK)
    for finding in linted(run_nearfar, str(program), str(tmp_path / "pool"))["findings"]:
        assert finding["place"].endswith("clock.c:11")
        assert finding["library"].startswith("[vdso]+0x")


#: A store that is flushed in assembly.
ASSEMBLY = """
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv) {
  int fd = open(argv[argc - 1], O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, 4096) != 0) return 2;
  uint64_t *pool = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (argc > 2) __asm__ volatile(".rept MANY\\n\\tclwb (%0)\\n\\t.endr" : : "r"(pool));
  pool[0] = 1;
  __asm__ volatile("clwb (%0)" : : "r"(pool) : "memory");
  FENCE;
  return 0;
}
"""


def test_assembly_next_to_reported_intrinsics(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    text = ASSEMBLY.replace("MANY", "1").replace("FENCE", "_mm_sfence()")
    flags = (INCLUDE, "-include", "nearfar/crash_intrinsics.h")
    program = compile_c(tmp_path, "program", text, *flags)
    found = linted(run_nearfar, str(program), str(tmp_path / "pool"))
    assert (found["findings"], found["warnings"]) == ([], [])


def test_flushes_that_are_not_seen_are_a_warning(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    fence = '__asm__ volatile("sfence" ::: "memory")'
    text = ASSEMBLY.replace("MANY", "5000").replace("FENCE", fence)
    program = compile_c(tmp_path, "program", text)
    done = run_nearfar("crash", "lint", "--json", "-", "--", str(program), str(tmp_path / "pool"))
    (warning,) = document(done)["warnings"]
    assert f"906 flush and fence instructions of {program} were not seen" in warning
    assert warning in done.stderr
    flags = ("--checker", "true", "--json", "-")
    done = run_nearfar("crash", "run", *flags, "--", str(program), str(tmp_path / "pool2"))
    assert document(done)["warnings"] == [warning]


#: One line is flushed by clwb, then another by clflush; END is a fence or nothing.
MIXED = """
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv) {
  int fd = open(argv[argc - 1], O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, 4096) != 0) return 2;
  volatile uint64_t *pool = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  pool[0] = 1; /* clwb */
  FIRST
  pool[8] = 2; /* clflush */
  __asm__ volatile("clflush (%0)" : : "r"(pool + 8) : "memory");
  END
  return 0;
}
"""


@pytest.mark.parametrize(
    ("first", "end", "unfenced"),
    [
        ("", "", []),  # clflush needs no fence, and the other line has no flush here
        ('__asm__ volatile("clwb (%0)" : : "r"(pool) : "memory");', "", ["clwb", "clflush"]),
        (
            '__asm__ volatile("clwb (%0)" : : "r"(pool) : "memory");',
            '__asm__ volatile("sfence" : : : "memory");',
            [],
        ),
    ],
)
def test_clflush_does_not_order_flushes_of_other_kinds(
    first: str, end: str, unfenced: list[str], run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    text = MIXED.replace("FIRST", first).replace("END", end)
    program = compile_c(tmp_path, "mixed", text, "-O1")
    found = linted(run_nearfar, str(program), str(tmp_path / "pool"))["findings"]
    lines = {
        f"mixed.c:{number}": kind
        for number, line in enumerate(text.splitlines(), 1)
        for kind in ("clwb", "clflush")
        if line.endswith(f"/* {kind} */")
    }
    missing = [lines[Path(f["place"]).name] for f in found if f["rule"] == "unfenced"]
    assert sorted(missing) == sorted(unfenced), found
