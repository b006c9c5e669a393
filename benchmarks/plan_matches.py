"""The part of the memory of another run, with other input, that a plan of advice names.

Usage: plan_matches.py SCRATCH [NAME...]   (cpython, jvm, node, go, redis, postgres)

Started programs (cpython, jvm, node): the plan is made on one run; two others, with two and three
times the entries, run with it, and their check counts the bytes at sites that the plan names.
Attached programs (go, redis, postgres): the plan is made from outside; a fresh process, with other
input, is placed once, and the bytes in regions that the rules name are divided by all writable
memory of the process. Every tier is node 0: nothing moves. Prints a line of JSON for each run.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent
_NEARFAR = os.environ.get("NEARFAR", str(_HERE.parent / "nearfar"))
_TIERS = ("--tier", "far=numa:0", "--tier", "near=numa:0")
_FACTORS = (2, 3)
_STARTED: dict[str, tuple[list[str], int]] = {
    "cpython": (["python3", f"{_HERE}/placement/table.py"], 300_000),
    "jvm": (["java", "-Xmx1g", "-cp", "SCRATCH", "Table"], 1_000_000),
    "node": (["node", f"{_HERE}/placement/table.js"], 500_000),
}
_ROUNDS = "4"
_STAY = "100000"
_PORT = "16379"
#: Of the server of PostgreSQL, which root may not start.
_USER = "daemon"
#: Anonymous, heap and file mappings: what a plan may place; stacks and pages of the kernel are not.
_HEADER = re.compile(r"[0-9a-f]+-[0-9a-f]+ .w.. \S+ \S+ \d+ *(.*)")


def _run(*command: str, **more: Any) -> None:
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, **more)


def _read(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def _started(name: str, scratch: Path) -> Iterator[dict[str, Any]]:
    command, entries = _STARTED[name]
    command = [word.replace("SCRATCH", str(scratch)) for word in command]
    if name == "jvm":
        _run("javac", "-d", str(scratch), f"{_HERE}/placement/Table.java")
    out = scratch / f"{name}-advice"
    advice = scratch / f"{name}.json"
    _run(
        *(_NEARFAR, "advise", "--far", "cxl-asic", "--whole-sites", "--out", str(out)),
        *("--json", str(advice), "--", *command, str(entries), _ROUNDS),
    )
    for factor in _FACTORS:
        file = scratch / f"{name}-{factor}.json"
        subprocess.run(
            [
                *(_NEARFAR, "run", "--plan", _read(advice)["plan"], *_TIERS, "--check"),
                *("--no-traffic", "--json", str(file), "--"),
                *(*command, str(factor * entries), _ROUNDS),
            ],
            check=False,  # a broken promise, which is a result
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        check = _read(file)["check"]
        yield {
            "name": name,
            "input": factor,
            "heap": check["matched_share"],
            "heap_bytes": _asked(check, "heap"),
            "mapped": check.get("matched_mapping_share"),
            "mapped_bytes": _asked(check, "mapping"),
            "kept": check["kept_share"],  # both together: the rule of the verdict
        }


def _asked(check: dict[str, Any], memory: str) -> int:
    return sum(
        rule["allocated_bytes"] + rule["elsewhere_bytes"]
        for rule in check["rules"]
        if rule["memory"] == memory
    )


def _writable_bytes(pid: int) -> int:
    """Bytes in memory of the writable mappings of a process, without stacks."""
    total, counts = 0, False
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        if match := _HEADER.fullmatch(line):
            counts = not match[1].startswith(("[stack", "[v"))
        elif re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            counts = False
        elif counts and line.startswith("Rss:"):
            total += int(line.split()[1]) << 10
    return total


#: Starts a program with its input, a multiple of the first one, and gives the process to observe.
Start = Callable[[Path, int], contextlib.AbstractContextManager[int]]


@contextlib.contextmanager
def _go(scratch: Path, factor: int) -> Iterator[int]:
    binary = scratch / "table"
    _run(
        *("go", "build", "-o", str(binary), f"{_HERE}/placement/table.go"),
        env={**os.environ, "CGO_ENABLED": "0", "GO111MODULE": "off", "GOCACHE": f"{scratch}/go"},
    )
    with subprocess.Popen(
        [str(binary), str(factor * 2_000_000), _STAY], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()  # it is filled
        try:
            yield process.pid
        finally:
            process.kill()


@contextlib.contextmanager
def _redis(scratch: Path, factor: int) -> Iterator[int]:
    server = ["redis-server", "--port", _PORT, "--save", "", "--dir", str(scratch)]
    keys = str(factor * 500_000)
    load = ["redis-benchmark", "-p", _PORT, "-r", keys, "-d", "200", "-c", "8", "-t"]
    with subprocess.Popen(server, stdout=subprocess.DEVNULL) as process:
        time.sleep(1)
        _run(*load, "set", "-n", str(3 * int(keys)), "-P", "16")
        asking = subprocess.Popen([*load, "get", "-n", "100000000"], stdout=subprocess.DEVNULL)
        try:
            yield process.pid
        finally:
            for each in (asking, process):
                each.terminate()
                each.wait()


@contextlib.contextmanager
def _postgres(scratch: Path, factor: int) -> Iterator[int]:
    """One backend of a server of another user: it reads its table, then random rows."""
    data = scratch / f"postgres-{factor}"
    _run("install", "-d", "-o", _USER, str(data))
    programs = subprocess.run(
        ["pg_config", "--bindir"], check=True, capture_output=True, text=True
    ).stdout.strip()
    as_other = ("setpriv", f"--reuid={_USER}", "--regid=nogroup", "--clear-groups")
    server = (
        "-o",
        f"-p 15432 -k {data} -c shared_buffers=1GB -c jit=off -c max_parallel_workers_per_gather=0",
    )
    postgres = f"{programs}/pg_ctl", "-D", f"{data}/db", "-l", f"{data}/log", *server, "-w"
    _run(*as_other, f"{programs}/initdb", "-D", f"{data}/db", "-A", "trust", cwd=data)
    _run(*as_other, *postgres, "start", cwd=data)
    psql = ("psql", "-h", str(data), "-p", "15432", "-U", _USER, "-X", "-q", "postgres")
    rows = factor * 600_000
    query = (
        f"create table t as select i, md5(i::text) as v from generate_series(1, {rows}) i;"
        "create index on t (i); analyze t;"
    )
    _run(*psql, "-c", query)
    loop = (
        "do $$ begin perform count(v) from t; for k in 1..100000000 loop "
        f"perform v from t where i = (1 + random() * {rows - 1})::int; end loop; end $$"
    )
    asking = subprocess.Popen(
        [*psql, "-c", "select pg_backend_pid()", "-c", loop, "-t"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert asking.stdout is not None
    try:
        yield int(asking.stdout.readline())
    finally:
        asking.terminate()
        _run(*as_other, *postgres, "-m", "immediate", "stop", cwd=data)


_ATTACHED: dict[str, Start] = {"go": _go, "redis": _redis, "postgres": _postgres}


def _attached(name: str, scratch: Path) -> Iterator[dict[str, Any]]:
    start = _ATTACHED[name]
    advice = scratch / f"{name}.json"
    with start(scratch, 1) as pid:
        _run(
            *(_NEARFAR, "advise", "--pid", str(pid), "--time", "10s", "--far", "cxl-asic"),
            *("--whole-sites", "--out", f"{scratch}/{name}-advice", "--json", str(advice)),
        )
    for factor in _FACTORS:
        file = scratch / f"{name}-{factor}.json"
        with start(scratch, factor) as pid:
            time.sleep(3)
            _run(
                *(_NEARFAR, "place", "--pid", str(pid), "--plan", _read(advice)["plan"]),
                *(*_TIERS, "--shared", "--once", "--json", str(file)),
                *("--out", f"{scratch}/{name}-placed-{factor}"),
            )
            total = _writable_bytes(pid)
        named = _read(file)["wanted_bytes"]
        yield {
            "name": name,
            "input": factor,
            "named": named / total,
            "named_bytes": named,
            "writable_bytes": total,
        }


def main() -> None:
    """Measure the named programs, or all."""
    scratch = Path(sys.argv[1]).absolute()
    scratch.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or [*_STARTED, *_ATTACHED]:
        runs = _started(name, scratch) if name in _STARTED else _attached(name, scratch)
        for run in runs:
            print(json.dumps(run), flush=True)


if __name__ == "__main__":
    main()
