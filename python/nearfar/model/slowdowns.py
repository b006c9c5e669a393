"""Published slowdowns, shown next to predictions; nothing is ever fitted to them."""

from __future__ import annotations

#: Mean slowdowns against DRAM in the WSCAD 2022 paper on PMDK: on Optane, on a SATA SSD.
WSCAD = {"list": (3.2, 47.0), "hash": (11.2, 274.8), "skip_list": (4.7, 167.4)}
#: The machine of the WSCAD 2022 paper, and its devices in the order above.
WSCAD_HOST = "xeon-5317"
WSCAD_DEVICES = ("optane-200-4x128", "ssd-s4600")
#: Assumed entries of its sets: the paper does not state them.
WSCAD_ENTRIES = 1024


def slowdown(structure: str, far: str, host: str) -> float | None:
    """The published mean, for the machine and devices of the paper only."""
    if host != WSCAD_HOST or far not in WSCAD_DEVICES or structure not in WSCAD:
        return None
    return WSCAD[structure][WSCAD_DEVICES.index(far)]


def reason(
    structure: str,
    predicted: tuple[float, float],
    published: float,
    *,
    same_code: bool,
    waits: float,
    disk: bool,
) -> str:
    """Why a prediction (its ends) and a published mean differ, as far as the model explains it.

    ``structure``: ours by the paper's name, others on libpmemobj, as the paper's are. ``waits``:
    fences a change, on a disk msyncs.
    """
    low, high = predicted
    waited = f"{waits:.1f} {'msyncs' if disk else 'fences'} a change"
    if low <= published <= high:
        return "the interval holds the published mean"
    if same_code and not disk:
        return (
            f"the same {waited} on both sides, and entries that stay in the caches: the paper's "
            "mean does not fit this reading"
        )
    if published > high and structure in WSCAD:
        return f"{waited}, where the paper's transactions make about nine"
    if published > high or structure.startswith("list"):
        return (
            f"{waited}; their weight depends on entries and updates, and the paper states neither"
        )
    waited += ", each waited for; the paper's hash and skip list leave out part of the logging"
    return f"{waited}, and its drive may answer from a cache of its own" if disk else waited
