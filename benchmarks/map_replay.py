"""Time and memory of one prediction by replay, all four variants: `map_replay.py [OPS [RUNS]]`.

Each run is a process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time


def main() -> None:
    operations = sys.argv[1] if len(sys.argv) > 1 else "7000000"
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    command = [
        sys.executable,
        "-m",
        "nearfar.cli.app",
        "predict",
        "map-get",
        "--far",
        "ucy-optane",
        "--host",
        "xeon-5218r",
        "--operations",
        operations,
        "--json",
        "-",
    ]
    wall, processor = [], []
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = time.monotonic()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        wall.append(time.monotonic() - start)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        processor.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    for name, values in (("wall", wall), ("processor", processor)):
        print(
            f"{operations} operations, {name}: median {statistics.median(values):.1f} s "
            f"({min(values):.1f} to {max(values):.1f}, {runs} runs)"
        )
    print(f"peak memory: {peak:.0f} MiB")


if __name__ == "__main__":
    main()
