"""Published orderings of near, far and interleaved memory, predicted from published bandwidths.

Usage: interleave.py predict > predictions/interleave.json    (committed before `judge` is run)
       interleave.py judge                                    prints the comparison

Two machines, of which only bandwidths and latencies are put into the model:

cxl-third   near memory as profile ddr5 (Mess), far memory with a third of its bandwidth of reads,
            mixes and latency as profile cxl-asic. Codes that bandwidth limits: their traffic needs
            1 to 3 times the near bandwidth, with and without stalls. Compared are 3:1 (the ratio
            of the bandwidths) and all near.
cxl-32      near 200 GB/s, far 32 GB/s, latencies of the same profiles, one thread whose stalls are
            a fifth to two thirds of its time. One table has a part of the stalls. Compared are 1:1
            for all data, the table far, and all near.
"""

from __future__ import annotations

import json
import statistics
import sys
from itertools import product
from pathlib import Path

from nearfar._native import PlacementTime
from nearfar.model.interleave import LoadedMemory, SiteLoad, loaded_memory_of
from nearfar.profiles import load_profile
from nearfar.profiles.loaded_curves import Loaded, LoadedCurves

PREDICTIONS = Path(__file__).parent / "predictions" / "interleave.json"
STEPS = 8
GB = 1e9
#: Fractions of reads, needed bandwidth over the near peak, stalls over compute time.
READS, NEEDED, STALLS = (1.0, 2 / 3), (1.0, 1.25, 1.5, 2.0, 3.0), (0.0, 0.25)
#: Stalls over all time near; the table's part of the stalls.
BOUND, TABLE = (0.2, 0.4, 0.66), (0.125, 0.25, 0.375, 0.5, 0.75)
#: Bytes/s of the single thread on the second machine.
ONE_THREAD = 8 * GB


def flat(name: str, latency_ns: float, peaks: dict[float, float]) -> LoadedMemory:
    """A memory with one latency up to its bandwidth by fraction of reads."""
    curves: dict[float, tuple[Loaded, ...]] = {
        share: (Loaded(0.0, latency_ns), Loaded(peak, latency_ns)) for share, peak in peaks.items()
    }
    return LoadedMemory(name, LoadedCurves(curves, ()))


def far_with(read_peak: float) -> LoadedMemory:
    """The expander of profile cxl-asic, several of them together."""
    profile = load_profile("cxl-asic")
    by_share = dict(profile.curve("bandwidth_by_read_share_bytes_per_s"))
    scale = read_peak / by_share[1.0]
    peaks = {share: rate * scale for share, rate in by_share.items()}
    return flat("cxl", profile.scalar("read_latency_ns"), peaks)


def time_of(
    sites: list[SiteLoad], base_s: float, near: LoadedMemory, far: LoadedMemory, steps: list[int]
) -> float:
    """Seconds of a placement."""
    times = PlacementTime(base_s * 1e9, near.native(), far.native())
    found = times.time([site.native() for site in sites], steps, STEPS)
    assert found is not None
    return float(found["time_ns"]) / 1e9


def third() -> list[dict[str, float]]:
    """Gain of 3:1 over all near, by code."""
    near = loaded_memory_of(load_profile("ddr5"))
    peaks = {share: curve[-1].bandwidth for share, curve in near.curves.curves.items()}
    far = far_with(peaks[1.0] / 3)
    ratio = far.idle_ns / near.idle_ns
    rows = []
    for reads, needed, stalls in product(READS, NEEDED, STALLS):
        peak = peaks[0.5] + (peaks[1.0] - peaks[0.5]) * (reads - 0.5) / 0.5
        traffic = needed * peak * (1 + stalls)
        code = SiteLoad("code", 1, traffic * reads, traffic * (1 - reads), stalls, stalls * ratio)
        near_s = time_of([code], 1.0, near, far, [8])
        mixed_s = time_of([code], 1.0, near, far, [6])
        rows.append(
            {"reads": reads, "needed": needed, "stalls": stalls, "gain": near_s / mixed_s - 1}
        )
    return rows


def relocated() -> list[dict[str, float]]:
    """Losses of 1:1 for all data, and of the table far, by case."""
    near = flat("near", 111, {1.0: 200 * GB})
    far = flat("far", 250, {1.0: 32 * GB})
    ratio = far.idle_ns / near.idle_ns
    rows = []
    for bound, part in product(BOUND, TABLE):
        stalls = [bound * part, bound * (1 - part)]
        sites = [
            SiteLoad(name, 1, ONE_THREAD * own / bound, 0, own, own * ratio)
            for name, own in zip(("table", "rest"), stalls, strict=True)
        ]
        near_s, even_s, moved_s = (
            time_of(sites, 1 - bound, near, far, steps) for steps in ([8, 8], [4, 4], [0, 8])
        )
        rows.append(
            {
                "bound": bound,
                "table": part,
                "interleaved_loss": even_s / near_s - 1,
                "relocated_loss": moved_s / near_s - 1,
            }
        )
    return rows


def predict() -> None:
    """Print all predictions."""
    print(json.dumps({"cxl-third": third(), "cxl-32": relocated()}, indent=1))


def geometric_mean(rows: list[dict[str, float]]) -> float:
    """Mean gain of codes."""
    return statistics.geometric_mean([1 + row["gain"] for row in rows]) - 1


def judge() -> None:
    """Compare the committed predictions with what was published (docs/references.md, 39 and 40)."""
    found = json.loads(PREDICTIONS.read_text())
    gains = found["cxl-third"]
    print(f"3:1 over all near, geometric mean of {len(gains)} codes: {geometric_mean(gains):.1%}")
    print(f"  from {min(row['gain'] for row in gains):.1%} to {max(r['gain'] for r in gains):.1%}")
    print("  published: 24 %")
    for row in found["cxl-32"]:
        more = row["interleaved_loss"] > row["relocated_loss"]
        print(
            f"stalls {row['bound']:.0%} of the time, {row['table']:.1%} of them of the table: 1:1 "
            f"loses {row['interleaved_loss']:.1%}, the table far {row['relocated_loss']:.1%}"
            f"{'' if more else ': 1:1 does not lose more'}"
        )
    print("  published: 1:1 loses 23 to 53 %, the table far 15 to 22 %")


if __name__ == "__main__":
    {"predict": predict, "judge": judge}[sys.argv[1]]()
