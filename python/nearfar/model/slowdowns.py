"""Slowdowns that others published, to stand beside predictions; nothing is ever fitted to them."""

from __future__ import annotations

#: Mean slowdowns against DRAM in the WSCAD 2022 paper on PMDK: on Optane, on a SATA SSD.
WSCAD = {"list": (3.2, 47.0), "hash": (11.2, 274.8), "skip_list": (4.7, 167.4)}
#: The machine of the paper, and its devices in the order above.
WSCAD_HOST = "xeon-5317"
WSCAD_DEVICES = ("optane-200-4x128", "ssd-s4600")


def slowdown(structure: str, far: str, host: str) -> float | None:
    """The published mean, for the machine and devices of the paper alone."""
    if host != WSCAD_HOST or far not in WSCAD_DEVICES or structure not in WSCAD:
        return None
    return WSCAD[structure][WSCAD_DEVICES.index(far)]
