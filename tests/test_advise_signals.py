"""``nearfar advise`` where the kernel refuses perf_event_open: samples by signals, and says so."""

from __future__ import annotations

import ctypes
import errno
import json
import struct
import subprocess
from pathlib import Path

import pytest

from conftest import RunNearfar
from small_host import write_small_host

#: A table of 64 MiB is chased in random order, by a thread.
PROGRAM = """#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
enum { LINES = 1 << 20 };
typedef struct line { struct line* next; char rest[56]; } line;
static line* chased(void) { return malloc(LINES * sizeof(line)); }
static void* chase(void* first) {
  line* at = first;
  for (long i = 0; i < 12000000; ++i) at = at->next;
  return at;
}
int main(void) {
  line* nodes = chased();
  for (uint32_t i = 0, at = 0; i < LINES; ++i) {
    uint32_t to = (at * 1664525u + 1013904223u) % LINES;
    nodes[at].next = &nodes[to];
    at = to;
  }
  pthread_t thread;
  void* last = 0;
  pthread_create(&thread, 0, chase, nodes);
  pthread_join(thread, &last);
  return last == 0;
}
"""


def refuse_perf_events() -> None:
    """Installs a filter of system calls, as containers have one."""
    load, jump_if_equal, give = 0x20, 0x15, 0x06
    number_of_perf_event_open = 298
    allow, refuse = 0x7FFF0000, 0x00050000 | errno.EPERM
    code = b"".join(
        struct.pack("HBBI", *instruction)
        for instruction in (
            (load, 0, 0, 0),
            (jump_if_equal, 0, 1, number_of_perf_event_open),
            (give, 0, 0, refuse),
            (give, 0, 0, allow),
        )
    )
    buffer = ctypes.create_string_buffer(code)
    program = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(buffer))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    set_no_new_privileges, set_seccomp, mode_filter = 38, 22, 2
    assert prctl(set_no_new_privileges, 1, 0, 0, 0) == 0
    assert prctl(set_seccomp, mode_filter, ctypes.c_char_p(program), 0, 0) == 0


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("signals")
    (folder / "chase.c").write_text(PROGRAM)
    flags = ["-O1", "-g", "-fno-omit-frame-pointer", "-fno-inline", "-pthread"]
    subprocess.run(["cc", *flags, "chase.c", "-o", "chase"], check=True, cwd=folder)
    return folder / "chase"


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    file = write_small_host(tmp_path_factory.mktemp("host") / "small.toml")
    return ("--near", "ddr4", "--host", str(file))


def test_the_program_is_sampled_by_signals_and_its_site_kept_near(
    run_nearfar: RunNearfar, host: tuple[str, ...], program: Path, tmp_path: Path
) -> None:
    arguments = ("advise", *host, "--json", "found.json", "--", str(program))
    done = run_nearfar(*arguments, prepare=refuse_perf_events)
    assert done.code == 0, done.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["method"] == "sampled"
    assert any("sampled by SIGPROF" in note for note in found["warnings"])
    assert not any("was not sampled" in note for note in found["warnings"])
    first = found["sites"][0]
    assert first["at"] == "chase.c:6"
    assert first["verdict"] == "near"
    assert first["size_bytes"] == pytest.approx(64 << 20, rel=0.05)
    assert found["slowdown_all_far"] > 1.2
    assert found["programs"][0]["path"] == "chase"


def test_programs_that_signals_do_not_reach_are_named(
    run_nearfar: RunNearfar, host: tuple[str, ...], program: Path, tmp_path: Path
) -> None:
    static = tmp_path / "static"
    source = program.parent / "chase.c"
    subprocess.run(["cc", "-O1", "-static", "-pthread", source, "-o", static], check=True)
    command = ("sh", "-c", f"{program}; ./static; ./static")
    arguments = ("advise", *host, "--json", "found.json", "--", *command)
    done = run_nearfar(*arguments, prepare=refuse_perf_events)
    assert done.code == 0, done.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    note = next(note for note in found["warnings"] if "was not sampled" in note)
    assert "statically linked" in note
    done = run_nearfar("advise", *host, "--", "./static", prepare=refuse_perf_events)
    assert done.code == 2
    assert "signals do not reach" in done.stderr


def test_a_running_process_is_refused_with_a_next_step(
    run_nearfar: RunNearfar, host: tuple[str, ...]
) -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        done = run_nearfar(
            "advise", *host, "--pid", str(process.pid), "--time", "1s", prepare=refuse_perf_events
        )
        process.kill()
    assert done.code == 3, done.stderr
    assert "the kernel refuses samples of this process" in done.stderr
    assert "nearfar advise -- PROGRAM" in done.stderr
