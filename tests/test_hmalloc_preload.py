"""libhmalloc-preload.so in place of glibc's malloc: sixteen cases, real programs, forks."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hmalloc_build import PRELOAD, PROGRAMS, clean_environment, compile_c, preloaded
from nearfar.process.helpers import shipped

CASES = [
    "of-nothing",
    "calloc-overflow",
    "calloc-zeroes",
    "aligned-calls",
    "page-calls",
    "bad-alignments",
    "usable-size",
    "realloc-growth",
    "realloc-shrink",
    "cross-thread-free",
    "threads-exiting",
    "fork",
    "dlopen",
    "libc-allocates",
    "errno-is-kept",
    "at-exit",
]

SETTINGS = {
    "near": {},
    "in shared memory": {
        "NEARFAR_HMALLOC_FAR": "shm:,capacity=1GiB",
        "NEARFAR_HMALLOC_DEFAULT": "far",
    },
    "hardened": {"NEARFAR_HMALLOC_HARDEN": "all"},
    "hardened in shared memory": {
        "NEARFAR_HMALLOC_FAR": "shm:,capacity=1GiB",
        "NEARFAR_HMALLOC_DEFAULT": "far",
        "NEARFAR_HMALLOC_HARDEN": "all",
    },
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("preload")
    for name in ("preload_cases", "fork_churn", "fork_contents"):
        compile_c(folder, name)
    # The compiler sees what is wrong there, and so does libc's header.
    compile_c(folder, "foreign", flags=["-Wno-free-nonheap-object", "-Wno-maybe-uninitialized"])
    return folder


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS.keys())
def test_all_cases(built: Path, settings: dict[str, str]) -> None:
    done = preloaded(built / "preload_cases", "libm.so.6", settings=settings)
    assert done.stdout.splitlines() == [f"ok {case}" for case in CASES], done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize("limit", ["-v 3000000", "-d 300000"])
def test_all_cases_where_memory_is_limited(built: Path, limit: str) -> None:
    command = f"ulimit {limit} && exec {built / 'preload_cases'} libm.so.6"
    done = preloaded("bash", "-c", command)
    assert done.stdout.splitlines() == [f"ok {case}" for case in CASES], done.stderr


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS.keys())
def test_a_program_limits_its_heap_after_its_start(
    tmp_path: Path, settings: dict[str, str]
) -> None:
    """Address space of the heap that is not in use does not count against RLIMIT_DATA."""
    done = preloaded(compile_c(tmp_path, "data_limit"), "200", settings=settings)
    full = "NEARFAR_HMALLOC_FAR" not in settings  # shared memory does not count
    assert done.stdout.splitlines() == [
        "half 1",
        "all 0 1" if full else "all 1 0",
        "thread 0 1",
        "again 1",
    ], done
    assert (done.returncode, done.stderr) == (0, "")


def _sqlite(folder: Path) -> list[str]:
    script = (
        "create table t(a integer primary key, b text);"
        "with recursive n(i) as (select 1 union all select i+1 from n where i<20000)"
        " insert into t select i, printf('row %d of many', i * 7919 % 20011) from n;"
        "create index b on t(b);"
        "select count(*), sum(length(b)), min(b), max(b) from t where b like '%7%';"
        "select b from t order by b desc limit 50;"
    )
    if shutil.which("sqlite3"):
        return ["sqlite3", ":memory:", script]
    body = f"import sqlite3\nc = sqlite3.connect(':memory:')\nfor s in {script!r}.split(';'):\n"
    return ["python3", "-c", body + "    print(c.execute(s).fetchall())"]


def _programs(folder: Path) -> dict[str, list[str]]:
    """Programs that do real work on this repository's own files."""
    repository = Path(__file__).parent.parent
    words = folder / "words"
    words.write_text("\n".join(f"{i * 7919 % 10007} line {i}" for i in range(20000)) + "\n")
    work = (
        "import collections, json, random, re, threading\n"
        "r = random.Random(1)\n"
        "d = {str(r.random()): [r.randrange(1000) for _ in range(20)] for _ in range(5000)}\n"
        "s = json.dumps(d, sort_keys=True)\n"
        "assert json.loads(s) == d\n"
        "out = []\n"
        "def run(k): out.append(sum(len(bytearray(i * k)) for i in range(500)))\n"
        "ts = [threading.Thread(target=run, args=(k,)) for k in range(8)]\n"
        "[t.start() for t in ts]; [t.join() for t in ts]\n"
        "print(len(s), hash(len(s)), collections.Counter(re.findall(r'\\d', s)), sorted(out))\n"
    )
    return {
        "python3": ["python3", "-c", work],
        "bash": ["bash", "-c", "for i in {1..60}; do x=$x$(echo $i | tr 0-9 a-j); done; echo $x"],
        "git": ["git", "-C", str(repository), "log", "--stat", "-5", "--format=%H", "--no-color"],
        "grep": ["grep", "-n", "-E", "(1|3|7)+.*line .*(42|17)", str(words)],
        "sqlite3": _sqlite(folder),
        "gcc": ["gcc", "-O2", "-S", "-o", "-", str(repository / "tests/programs/preload_cases.c")],
    }


@pytest.mark.parametrize("tier", ["near", "far"])
@pytest.mark.parametrize("name", ["python3", "bash", "git", "grep", "sqlite3", "gcc"])
def test_real_programs_say_the_same(name: str, tier: str, tmp_path: Path) -> None:
    command = _programs(tmp_path)[name]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    settings = {"NEARFAR_HMALLOC_DEFAULT": tier, "NEARFAR_HMALLOC_FAR": "shm:,capacity=1GiB"}
    settings |= {
        "NEARFAR_HMALLOC_STATS": "exit",
        "NEARFAR_HMALLOC_STATS_FILE": str(tmp_path / "stats-%p"),
    }
    plain = subprocess.run(command, env=clean_environment(), capture_output=True, text=True)
    done = preloaded(*command, settings=settings)
    assert plain.returncode == 0, plain.stderr
    assert (done.returncode, done.stdout, done.stderr) == (0, plain.stdout, plain.stderr)
    counts = [
        line.split() for file in tmp_path.glob("stats-*") for line in file.read_text().splitlines()
    ]
    allocations = sum(int(v) for k, v in counts if k == f"tier.{tier}.allocations")
    assert allocations > 50, "the program did not allocate through the library"


def test_forks_under_churn(built: Path) -> None:
    assert preloaded(built / "fork_churn", "400").stdout == "400 of 400\n"


def test_forks_while_guards_are_set(built: Path) -> None:
    """A tier in a file is copied while other threads make the guards of new blocks inaccessible."""
    settings = {**SETTINGS["in shared memory"], "NEARFAR_HMALLOC_HARDEN": "guard"}
    done = preloaded(built / "fork_churn", "40", "2000000", settings=settings)
    assert (done.returncode, done.stdout) == (0, "40 of 40\n"), done


def test_children_get_no_block_twice(built: Path) -> None:
    assert preloaded(built / "fork_contents", "300").stdout == "300 of 300\n"


@pytest.mark.long
@pytest.mark.parametrize(("tier", "block_limit"), [("near", 20000), ("far", 1000)])
def test_ten_thousand_forks_under_churn(built: Path, tier: str, block_limit: int) -> None:
    """Small blocks in the far tier: each fork copies what a tier in a file holds."""
    settings = {"NEARFAR_HMALLOC_DEFAULT": tier, "NEARFAR_HMALLOC_FAR": "shm:,capacity=256MiB"}
    done = preloaded(
        built / "fork_churn", "10000", str(block_limit), settings=settings, timeout=900
    )
    assert done.stdout == "10000 of 10000\n", done


def _exit_threads(folder: Path, runs: int) -> None:
    program = compile_c(folder, "exiting_threads")
    for _ in range(runs):
        assert preloaded(program, timeout=30).stdout == "all threads exited\n"


def test_detached_threads_exit_with_warm_caches(tmp_path: Path) -> None:
    """libc frees blocks of exited threads under a lock that pthread_create() takes."""
    _exit_threads(tmp_path, 10)


@pytest.mark.long
def test_detached_threads_exit_with_warm_caches_200_times(tmp_path: Path) -> None:
    _exit_threads(tmp_path, 200)


def test_what_glibc_reports_about_its_heap(tmp_path: Path) -> None:
    done = preloaded(compile_c(tmp_path, "malloc_extensions"))
    lines = done.stdout.splitlines()
    assert done.returncode == 0
    assert len(lines) == 25
    assert [line for line in lines if not line.startswith("ok ")] == []
    assert done.stderr.startswith("hmalloc-stats 1\n")
    assert "tier.near.live_bytes " in done.stderr


@pytest.mark.parametrize(
    "library",
    [
        "libhmalloc-preload.so",
        "libnearfar-allocation-log.so",
        "libnearfar-trace-allocations.so",
    ],
)
def test_new_handlers_are_called_as_by_the_c_plus_plus_library(
    tmp_path: Path, library: str
) -> None:
    program = tmp_path / "new_handler"
    subprocess.run(
        [
            "c++",
            "-O2",
            "-std=c++17",
            "-Wno-alloc-size-larger-than",
            str(PROGRAMS / "new_handler.cpp"),
            "-o",
            str(program),
        ],
        check=True,
    )
    plain = subprocess.run([program], capture_output=True, text=True, check=True)
    assert plain.stdout.splitlines()[6:12] == ["bad_alloc 1"] * 3 + ["null 1"] * 3
    done = preloaded(program, settings={"LD_PRELOAD": str(shipped(library))})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == plain.stdout


@pytest.mark.parametrize("limit", ["3000000", "unlimited"])
def test_blocks_taken_after_a_migration_are_on_its_nodes(tmp_path: Path, limit: str) -> None:
    """With limited address space a tier is mapped chunk by chunk, each with its policy."""
    program = compile_c(tmp_path, "migrated", linked=True)
    done = subprocess.run(
        ["bash", "-c", f"ulimit -v {limit} && exec {program}"],
        env=clean_environment(),
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "policy 2\n", "")  # MPOL_BIND


def test_forks_while_streams_are_flushed_and_read(tmp_path: Path) -> None:
    """fflush(NULL) waits for streams whose readers allocate, and fork() waits for fflush()."""
    program = compile_c(tmp_path, "fork_streams")
    assert preloaded(program, "50").stdout == "50 of 50\n"


def test_a_handler_that_forks_before_fork_blocks_signals_leaves_streams_usable(
    tmp_path: Path,
) -> None:
    program = compile_c(tmp_path, "fork_in_fork", flags=["-rdynamic"])
    assert preloaded(program).stdout == "0\n"


@pytest.mark.parametrize("case", ["libc", "libc-full"])
def test_blocks_of_libcs_own_malloc_go_back_to_it(built: Path, case: str) -> None:
    done = preloaded(built / "foreign", case)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("call", ["free", "realloc", "usable"])
@pytest.mark.parametrize("case", ["stack", "variable", "mapping", "thread", "inside", "freed"])
def test_a_pointer_of_no_heap_is_named(built: Path, case: str, call: str) -> None:
    done = preloaded(built / "foreign", case, call)
    assert done.returncode == -signal.SIGABRT, done
    function = {"usable": "malloc_usable_size"}.get(call, call)
    assert done.stderr.startswith(f"libhmalloc: {function}(0x"), done.stderr
    assert "the pointer is neither from this library nor from libc" in done.stderr


@pytest.mark.parametrize(("beyond", "code"), [(0, 0), (1, -signal.SIGSEGV)])
def test_a_store_behind_a_guarded_block_ends_the_program(beyond: int, code: int) -> None:
    script = f"""
import ctypes
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc_usable_size.argtypes = [ctypes.c_void_p]
block = libc.malloc(600000)
ctypes.memset(block, 1, libc.malloc_usable_size(block) + {beyond})
"""
    done = preloaded(sys.executable, "-c", script, settings={"NEARFAR_HMALLOC_HARDEN": "guard"})
    assert done.returncode == code, done.stderr


@pytest.mark.parametrize(
    ("settings", "code", "words"),
    [
        ({"NEARFAR_HMALLOC_FAR": "nonsense"}, 2, "NEARFAR_HMALLOC_FAR: unknown tier 'nonsense'"),
        ({"NEARFAR_HMALLOC_FAR": "numa:63"}, 3, "no NUMA node 63"),
        ({"NEARFAR_HMALLOC_FAR": "dram,overflow=burst"}, 2, "must be fail or spill:TIER"),
        ({"NEARFAR_HMALLOC_FAR": "dram,overflow=spill:none"}, 2, "no other tier has this name"),
        ({"NEARFAR_HMALLOC_FAR": "file:/no/such/folder"}, 2, "/no/such"),
        ({"NEARFAR_HMALLOC_FAR": "shm:,capacity=900TiB"}, 3, "does not fit"),
        (
            {"NEARFAR_HMALLOC_FAR": "dram,capacity=4KiB"},
            2,
            "invalid capacity '4KiB': must be at least 64KiB",
        ),
        ({"NEARFAR_HMALLOC_DEFAULT": "slow"}, 2, "no such tier 'slow'"),
        ({"NEARFAR_HMALLOC_DECAY_MS": "soon"}, 2, "NEARFAR_HMALLOC_DECAY_MS"),
        ({"NEARFAR_HMALLOC_HARDEN": "very"}, 2, "quarantine=SIZE or all"),
        ({"NEARFAR_HMALLOC_STATS": "often"}, 2, "exit, signal:NUMBER or rules"),
        ({"NEARFAR_HMALLOC_NEAR": "shm:"}, 2, "the near tier must be dram or numa"),
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, str], code: int, words: str) -> None:
    done = preloaded("true", settings=settings)
    assert done.returncode == code
    assert done.stderr.startswith("libhmalloc: ")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_names_of_variables_of_version_0_1_are_accepted_with_a_warning() -> None:
    done = preloaded("true", settings={"HMALLOC_FAR": "dram", "HMALLOC_DEFAULT": "far"})
    assert done.returncode == 0
    assert done.stderr.splitlines() == [
        f"libhmalloc: HMALLOC_{name} is deprecated: set NEARFAR_HMALLOC_{name} instead"
        for name in ("FAR", "DEFAULT")
    ]
    new = {"NEARFAR_HMALLOC_FAR": "dram", "HMALLOC_FAR": "nonsense"}
    done = preloaded("true", settings=new)
    assert (done.returncode, done.stderr) == (0, "")


def test_statistics_on_a_signal(tmp_path: Path) -> None:
    stats = tmp_path / "stats"
    script = f"""
import os, signal, time
from pathlib import Path
held = [bytearray(1000) for _ in range(1000)]
os.kill(os.getpid(), signal.SIGUSR2)
for _ in range(60_000):
    if Path({str(stats)!r}).exists() and "thread." in Path({str(stats)!r}).read_text(): break
    time.sleep(0.01)
"""
    settings = {"NEARFAR_HMALLOC_STATS": f"signal:{12}", "NEARFAR_HMALLOC_STATS_FILE": str(stats)}
    assert preloaded("python3", "-c", script, settings=settings).returncode == 0
    lines = stats.read_text().splitlines()
    assert lines[0] == "hmalloc-stats 1"
    assert int(dict(line.split() for line in lines[1:])["tier.near.allocations"]) > 1000


def test_the_child_of_a_tier_in_a_file_has_its_own(tmp_path: Path) -> None:
    script = (
        "import os\n"
        "data = bytearray(b'p' * 100000)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    data[0] = ord('c')\n"
        "    more = [bytearray(i) for i in range(2000)]\n"
        "    os._exit(0 if data[1] == ord('p') else 1)\n"
        "print(os.waitpid(child, 0)[1], chr(data[0]))\n"
    )
    for policy in ("private", "copy"):
        spec = f"file:{tmp_path},capacity=256MiB,fork={policy}"
        settings = {"NEARFAR_HMALLOC_DEFAULT": "far", "NEARFAR_HMALLOC_FAR": spec}
        done = preloaded("python3", "-c", script, settings=settings)
        assert done.stdout == "0 p\n", (policy, done)


def test_guards_of_a_tier_in_a_file_are_left_out_of_a_child(tmp_path: Path) -> None:
    script = (
        "import os\n"
        "written = bytearray(b'p' * 3000000)\n"
        "del written\n"
        "data = bytearray(b'p' * 600000)\n"
        "child = os.fork()\n"
        "if child == 0: os._exit(0 if data == b'p' * 600000 else 1)\n"
        "print(os.waitpid(child, 0)[1])\n"
    )
    settings = {
        "NEARFAR_HMALLOC_DEFAULT": "far",
        "NEARFAR_HMALLOC_FAR": f"file:{tmp_path},capacity=256MiB",
    }
    settings |= {"NEARFAR_HMALLOC_HARDEN": "guard"}
    done = preloaded(sys.executable, "-c", script, settings=settings)
    assert done.stdout == "0\n", done


def test_freed_memory_of_a_tier_in_a_file_is_not_copied_for_a_child(tmp_path: Path) -> None:
    script = (
        "import os\n"
        "freed = bytearray(b'f' * 60_000_000)\n"
        "kept = bytearray(b'k' * 1_000_000)\n"
        "del freed\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    rollup = open('/proc/self/smaps_rollup').read()\n"
        "    (own,) = (l.split()[1] for l in rollup.splitlines() if l.startswith('Anonymous:'))\n"
        "    print(int(own), kept == b'k' * 1_000_000)\n"
        "else:\n"
        "    os.waitpid(child, 0)\n"
    )
    settings = {
        "NEARFAR_HMALLOC_DEFAULT": "far",
        "NEARFAR_HMALLOC_FAR": f"file:{tmp_path},capacity=256MiB",
    }
    settings |= {"NEARFAR_HMALLOC_DECAY_MS": "-1"}
    done = preloaded(sys.executable, "-c", script, settings=settings)
    own_kib, same = done.stdout.split()
    assert same == "True"
    assert 1_000 < int(own_kib) < 40_000, done


#: Prints the bytes on large pages of a block for which the program asks for large pages.
HUGE_PAGES = """\
import ctypes
MADV_HUGEPAGE, MIB = 14, 1 << 20
libc = ctypes.CDLL(None)
libc.aligned_alloc.restype = ctypes.c_void_p
libc.aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
block = libc.aligned_alloc(2 * MIB, 64 * MIB)
assert libc.madvise(block, 64 * MIB, MADV_HUGEPAGE) == 0
ctypes.memset(block, 1, 64 * MIB)
huge, inside = 0, False
for line in open("/proc/self/smaps"):
    words = line.split()
    if "-" in words[0] and not words[0].endswith(":"):
        begin, end = (int(each, 16) for each in words[0].split("-"))
        inside = begin < block + 64 * MIB and block < end
    huge += int(words[1]) if inside and words[0] == "AnonHugePages:" else 0
print(huge)
"""


@pytest.mark.parametrize("tier", ["near", "far"])
def test_small_pages_hold_where_the_program_asks_for_large_ones(tier: str) -> None:
    def kib_on_large_pages(pages: str) -> int:
        settings = {f"NEARFAR_HMALLOC_{tier.upper()}": pages, "NEARFAR_HMALLOC_DEFAULT": tier}
        done = preloaded(sys.executable, "-c", HUGE_PAGES, settings=settings)
        return int(done.stdout)

    if kib_on_large_pages("dram") == 0:
        pytest.skip("this machine has no large pages to give")
    assert kib_on_large_pages("dram,pages=4k") == 0
    assert kib_on_large_pages("dram,pages=thp") > 0


def _with_small_disk(folder: Path, program: Path, reserve: str) -> subprocess.CompletedProcess[str]:
    mounted = f"mount -t tmpfs -o size=16m none {folder} && exec {program} {folder} {reserve}"
    return subprocess.run(["unshare", "-rm", "sh", "-c", mounted], capture_output=True, text=True)


def test_a_full_disk_is_an_error_not_a_signal(tmp_path: Path) -> None:
    program = compile_c(tmp_path, "full_disk", linked=True)
    folder = tmp_path / "disk"
    folder.mkdir()
    full = _with_small_disk(folder, program, "capacity=12MiB,reserve=full")
    if "blocks" not in full.stdout:
        pytest.skip(f"no file system can be mounted here: {full.stderr}")
    assert full.stdout == "192 blocks, then ENOMEM\n"
    chunk = _with_small_disk(folder, program, "capacity=12MiB,reserve=chunk")
    assert (chunk.returncode, chunk.stdout) == (0, "0 blocks, then ENOMEM\n")
    refused = _with_small_disk(folder, program, "capacity=40MiB")
    assert refused.returncode == 3
    assert "does not fit" in refused.stdout
    sparse = _with_small_disk(folder, program, "capacity=12MiB,reserve=sparse")
    assert sparse.returncode == -7, "without a reservation the kernel sends SIGBUS, as asked"


def test_the_library_is_what_was_asked_for() -> None:
    assert PRELOAD.exists()
    script = "print(open('/proc/self/maps').read().count('libhmalloc-preload'))"
    assert int(preloaded("python3", "-c", script).stdout) > 0
    assert "libhmalloc" not in os.environ.get("LD_PRELOAD", "")
