"""Slowdowns that others published, to stand beside predictions; nothing is ever fitted to them."""

from __future__ import annotations

#: Mean slowdowns against DRAM in the WSCAD 2022 paper on PMDK: on Optane, on a SATA SSD.
WSCAD = {"list": (3.2, 47.0), "hash": (11.2, 274.8), "skip_list": (4.7, 167.4)}
#: The machine of the paper, and its devices in the order above.
WSCAD_HOST = "xeon-5317"
WSCAD_DEVICES = ("optane-200-4x128", "ssd-s4600")
#: Entries of its sets as we take them: it does not tell.
WSCAD_ENTRIES = 1024


def slowdown(structure: str, far: str, host: str) -> float | None:
    """The published mean, for the machine and devices of the paper alone."""
    if host != WSCAD_HOST or far not in WSCAD_DEVICES or structure not in WSCAD:
        return None
    return WSCAD[structure][WSCAD_DEVICES.index(far)]


def reason(
    predicted: tuple[float, float], published: float, *, same_code: bool, waits: float, disk: bool
) -> str:
    """Why a prediction (its ends) and a published mean differ, as far as the model can tell.

    ``waits``: fences an operation, on a disk msyncs.
    """
    low, high = predicted
    what = "msyncs" if disk else "fences"
    if low <= published <= high:
        return "the interval holds the published mean"
    if published < low:
        return (
            f"{waits:.1f} {what} an operation, each waited for; the paper's hash and skip list "
            "leave out part of the logging, and its drive may answer from a cache of its own"
        )
    if same_code and not disk:
        return (
            f"the same {waits:.1f} fences on both sides, and entries that stay in the caches: the "
            "paper's mean does not fit this reading"
        )
    return (
        f"{waits:.1f} {what} an operation, where the paper's transactions make about nine a change"
    )
