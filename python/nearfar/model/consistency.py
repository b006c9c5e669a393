"""Internal consistency checks of input numbers; this is not validation.

Each check returns a sentence for an inconsistency, else None. The cases behind the checks are
errors in a published table, kept as tests: half as many far rows as the formula next to them gives;
a large case whose time is 1.5 times size over speed where the small one is 1.0 times; a transfer
volume counted at 8 bytes an element against speeds counted at 16.
"""

from __future__ import annotations

from collections.abc import Sequence

HEADING = "internal consistency: "
#: An integer factor between two numbers counts as an error if they match it this closely.
_CLOSE = 0.05
#: Multiples of size over speed that differ by more do not follow one law.
_SAME_LAW = 1.2


def far_rows_against_formula(
    far_rows: int, rows: int, near_bandwidth: float, far_bandwidth: float
) -> str | None:
    """Check far rows against rows·B_far / (B_near + B_far), where both sides' sweeps are equal."""
    asked = rows * far_bandwidth / (near_bandwidth + far_bandwidth)
    for factor, words in ((0.5, "half"), (2.0, "twice")):
        if abs(far_rows / asked / factor - 1) < _CLOSE:
            return (
                f"{HEADING}{far_rows} far rows are {words} of the {asked:.0f} at which size over "
                "speed is equal on both sides"
            )
    return None


def times_over_size(cases: Sequence[tuple[float, float, float]]) -> str | None:
    """Check that times over size / speed are equal; a case is (time_s, bytes, bytes/s)."""
    multiples = [time / (size / speed) for time, size, speed in cases]
    if max(multiples) <= _SAME_LAW * min(multiples):
        return None
    listed = ", ".join(f"{multiple:.2f}" for multiple in multiples)
    return f"{HEADING}times are {listed} times size over speed: not one law"


def transfer_volume(
    transfer_s: float, elements: float, bandwidth: float, counted_bytes: int = 16
) -> str | None:
    """Check a transfer's time against its elements, counted as its speed counts them."""
    implied = transfer_s * bandwidth / elements
    half = counted_bytes / 2
    if abs(implied / half - 1) < 0.25:
        return (
            f"{HEADING}a transfer in {transfer_s:g} s moves {implied:.1f} bytes an element at this "
            f"speed, which counts {counted_bytes}: was the volume counted at {half:g}?"
        )
    return None
