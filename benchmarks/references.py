"""STREAM, the pointer chase and mapped files against independent references, in interleaved pairs.

Run it on a quiet machine from the checkout, after ``make build``:

    .venv/bin/python benchmarks/references.py [stream] [chase] [mapped] [blocks]

Each line is the median of the ratios nearfar / reference over the pairs, with its 95 % interval.
fio (Debian package) is needed for ``mapped``. ``blocks`` explains its random reads: what blocks of
4 KiB gain from overlapping each other (nearfar: back to back; reference: separated by lfence). The
figures go into benchmarks/results.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from nearfar._native import ArrayBench, LatencyProbe, MappedBench
from nearfar.stats import median, ratio_of_pairs

HERE = Path(__file__).parent
PAIRS = int(os.environ.get("PAIRS", "12"))
MIB = 1 << 20

Measure = Callable[[], dict[str, float]]


def interleave(ours: Measure, reference: Measure, title: str) -> None:
    """Run both PAIRS times in a random order within each pair; print the ratios."""
    pairs: list[tuple[dict[str, float], dict[str, float]]] = []
    order = random.Random(1)
    for _ in range(PAIRS):
        if order.random() < 0.5:
            first = ours()
            pairs.append((first, reference()))
        else:
            second = reference()
            pairs.append((ours(), second))
    print(f"\n{title} ({PAIRS} interleaved pairs)")
    for key in pairs[0][0]:
        a = [pair[0][key] for pair in pairs]
        b = [pair[1][key] for pair in pairs]
        r = ratio_of_pairs(a, b)
        print(
            f"  {key:28} nearfar {median(a).value:12.5g}  reference {median(b).value:12.5g}  "
            f"ratio {r.value:.3f} [{r.low:.3f}, {r.high:.3f}]",
            flush=True,
        )


def build(name: str, *flags: str) -> Path:
    program = Path(tempfile.gettempdir()) / f"nearfar-reference-{name}"
    source = HERE / "reference" / f"{name}.c"
    subprocess.run(["gcc", *flags, str(source), "-o", str(program)], check=True)
    return program


def stream() -> None:
    program = build("stream", "-O3", "-march=native", "-fopenmp")
    kernels = ("copy", "scale", "add", "triad")
    elements, iterations = 16 * MIB, 10  # 128 MiB an array
    cpus = sorted(os.sched_getaffinity(0))
    for threads in range(1, len(cpus) + 1):
        team = cpus[:threads]

        def ours(team: list[int] = team) -> dict[str, float]:
            bench = ArrayBench("dram", "dram", "dram", elements, team)
            best = dict.fromkeys(kernels, 0.0)
            for i in range(iterations):
                for kernel in kernels:
                    r = bench.repeat(kernel, team)
                    if i > 0:
                        best[kernel] = max(best[kernel], r["counted_bytes"] / r["seconds"])
            return best

        def reference(team: list[int] = team) -> dict[str, float]:
            places = ",".join(f"{{{cpu}}}" for cpu in team)
            environment = {
                **os.environ,
                "OMP_NUM_THREADS": str(len(team)),
                "OMP_PLACES": places,
                "OMP_PROC_BIND": "close",
            }
            line = subprocess.run(
                [str(program), str(elements), str(iterations)],
                check=True,
                capture_output=True,
                text=True,
                env=environment,
            ).stdout.split()
            return dict(zip(kernels, map(float, line[:4]), strict=True))

        interleave(
            ours, reference, f"STREAM, {threads} threads, 128 MiB arrays, bytes/s, best of 9"
        )


def chase() -> None:
    program = build("chase", "-O2")
    samples, cpu = 11, max(os.sched_getaffinity(0))
    for pages in ("thp", "4k"):
        regions = {
            "16 KiB": 16 << 10,
            "512 KiB": 512 << 10,
            "64 MiB": 64 * MIB,
            "256 MiB": 256 * MIB,
        }

        def ours(pages: str = pages, regions: dict[str, int] = regions) -> dict[str, float]:
            found = {}
            for name, region in regions.items():
                probe = LatencyProbe(f"dram,pages={pages}", region, cpu)
                probe.prepare(region, 64, 1, 1_000_000)
                found[name] = median(
                    [probe.sample(2_000_000)["latency_ns"] for _ in range(samples)]
                ).value
            return found

        def reference(pages: str = pages, regions: dict[str, int] = regions) -> dict[str, float]:
            return {
                name: float(
                    subprocess.run(
                        [str(program), str(region), str(cpu), pages, str(samples)],
                        check=True,
                        capture_output=True,
                        text=True,
                    ).stdout.split()[0]
                )
                for name, region in regions.items()
            }

        interleave(ours, reference, f"Pointer chase, {pages} pages, ns a load, median of {samples}")


#: name: (method, write, random, warmth of ours, fio engine, fio flags). fio repeats its pass over
#: the same mapping, so its mapped reads are resident ones.
CASES = {
    "mmap read sequential": ("mapped", False, False, "resident", "mmap", []),
    "mmap read random": ("mapped", False, True, "resident", "mmap", []),
    "psync read sequential": ("buffered", False, False, "warm", "psync", []),
    "psync read random": ("buffered", False, True, "warm", "psync", []),
    "O_DIRECT read sequential": ("direct", False, False, "cold", "psync", ["--direct=1"]),
    "O_DIRECT read random": ("direct", False, True, "cold", "psync", ["--direct=1"]),
    "mmap write sequential": ("mapped", True, False, "warm", "mmap", ["--end_fsync=1"]),
    "psync write sequential": ("buffered", True, False, "warm", "psync", ["--end_fsync=1"]),
    "O_DIRECT write sequential": ("direct", True, False, "cold", "psync", ["--direct=1"]),
    "O_DIRECT write random": ("direct", True, True, "cold", "psync", ["--direct=1"]),
}
FILE_BYTES = 1024 * MIB
BUDGET_S = 1.0
RANDOM_BLOCK, SEQUENTIAL_BLOCK = 4096, 131072


def fio_line(path: str, engine: str, write: bool, shuffled: bool, extra: list[str]) -> list[str]:
    kind = ("rand" if shuffled else "") + ("write" if write else "read")
    block = "4k" if shuffled else "128k"
    timed = [] if write else ["--time_based", f"--runtime={BUDGET_S:g}"]
    stop = [f"--runtime={BUDGET_S:g}"] if write else []
    return [
        "fio",
        "--name=reference",
        f"--filename={path}",
        f"--size={FILE_BYTES}",
        f"--ioengine={engine}",
        f"--rw={kind}",
        f"--bs={block}",
        "--iodepth=1",
        "--invalidate=0",
        "--fadvise_hint=0",
        "--iomem_align=4096",  # as ours: fio's default, 16 bytes into a page, costs a tenth
        "--norandommap=0",
        "--gtod_reduce=1",
        "--allow_file_create=0",
        f"--cpus_allowed={max(os.sched_getaffinity(0))}",
        "--output-format=json",
        *timed,
        *stop,
        *extra,
    ]


def fio_rate(line: list[str], write: bool) -> float:
    """Bytes/s that fio reports."""
    result = subprocess.run(line, check=True, capture_output=True, text=True).stdout
    job = json.loads(result[result.index("{") :])["jobs"][0]
    return float(job["write" if write else "read"]["bw_bytes"])


def mapped() -> None:
    cpu = max(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory(dir=".") as folder:
        bench = MappedBench(folder, FILE_BYTES, cpu)
        path = f"/proc/{os.getpid()}/fd/{bench.facts()['descriptor']}"
        for name, (method, write, shuffled, warmth, engine, extra) in CASES.items():
            block = RANDOM_BLOCK if shuffled else SEQUENTIAL_BLOCK

            def ours(m=method, w=write, s=shuffled, t=warmth, b=block) -> dict[str, float]:  # type: ignore[no-untyped-def]
                seconds = moved = 0.0
                while seconds < (0.01 if w else BUDGET_S / 2):
                    r = bench.run(m, w, s, t, b, 1, int(BUDGET_S * 1e9))
                    seconds, moved = seconds + r["seconds"], moved + r["bytes"]
                return dict.fromkeys(("bytes/s", "less fio's own"), moved / seconds)

            line = fio_line(path, engine, write, shuffled, extra)
            idle = fio_line(path, "null", write, shuffled, [])

            def reference(line=line, idle=idle, w=write, b=block) -> dict[str, float]:  # type: ignore[no-untyped-def]
                rate = fio_rate(line, w)
                own_s = b / fio_rate(idle, w)  # what a request costs fio when nothing is moved
                return {"bytes/s": rate, "less fio's own": b / (b / rate - own_s)}

            interleave(ours, reference, f"{name}: {' '.join(line[1:])}")


def blocks() -> None:
    program, cpu = build("blocks", "-O2"), max(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory(dir=".") as folder:
        bench = MappedBench(folder, FILE_BYTES, cpu)
        path = f"/proc/{os.getpid()}/fd/{bench.facts()['descriptor']}"

        def copied(fenced: bool) -> dict[str, float]:
            command = [str(program), path, str(RANDOM_BLOCK), str(cpu), str(int(fenced))]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            return {"bytes/s": RANDOM_BLOCK / float(done.stdout) * 1e9}

        interleave(lambda: copied(False), lambda: copied(True), "Blocks of 4 KiB in random order")


if __name__ == "__main__":
    for wanted in sys.argv[1:] or ["stream", "chase", "mapped"]:
        {"stream": stream, "chase": chase, "mapped": mapped, "blocks": blocks}[wanted]()
