"""``nearfar compare``: compare the figures of runs or of two profiles."""

from __future__ import annotations

from typing import Annotated

import typer

from nearfar.cli import flags
from nearfar.cli.output import show_document, show_notes

Sides = Annotated[
    list[str],
    typer.Argument(
        metavar="A… B",
        show_default=False,
        help="Runs, profiles, hosts or JSON files of `sim` and `predict`: the base, optionally "
        "more base runs (for CI), and last the one to compare.",
    ),
]
Threshold = Annotated[
    str, flags.text("--threshold", "SHARE", "Largest accepted degradation, as 5% or 0.05.")
]
Tiers = Annotated[
    list[str] | None,
    flags.text(
        "--tier",
        "TIER",
        "Twice: compare figures of the first tier in A with those of the second in B, or both in "
        "one run.",
    ),
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Exit with 4 if a run was too disturbed to decide.")
]


def compare(
    sides: Sides,
    threshold: Threshold = "5%",
    tier: Tiers = None,
    json: flags.Json = None,
    strict: Strict = False,
    quiet: flags.Quiet = False,
) -> int:
    """Compare the figures of runs, of two profiles, or of two simulations.

    Exits with 1 if a figure of B is worse than A's by more than the threshold: a longer latency or
    time, a lower bandwidth, a higher price or energy. Where both sides have intervals, the
    intervals must not overlap, and the probability that nothing changed, corrected for the number
    of figures (Holm), must be below 5 %. Also exits with 1 if a whole section got worse: the
    geometric mean of the ratios of its figures, and the whole bootstrap interval of this mean,
    exceed the threshold.
    Sizes, counts, ratios of two measurements, and figures of fewer than six repeats are shown and
    decide nothing. A disturbed run decides nothing either: the differences are shown, and the exit
    code is 0.

    Several runs before B are merged: each figure is their median, and its interval spans all of
    theirs. Such a base includes variation from day to day; a single run does not.

    With --tier, given twice, figures of two tiers are compared: both of one run, or the first of A
    and the second of B. Tiers may differ in their pages only.

    Examples:

        nearfar compare nearfar-runs/20250102T030405Z-study nearfar-runs/20250103T030405Z-study

        nearfar compare nearfar-runs/*-study --strict --json compared.json

        nearfar compare nearfar-runs/20250102T030405Z-study --tier dram --tier dram,pages=thp

        nearfar compare ddr4 optane-100 --threshold 20%
    """
    from nearfar import api
    from nearfar.errors import NoisyError
    from nearfar.report.terminal.comparison import comparison
    from nearfar.units import parse_share

    verdict = api.compare(*sides, threshold=parse_share(threshold), tiers=tier or ())
    shown = comparison(
        verdict.found, verdict.section_shifts, verdict.limit, verdict.heads, noisy=verdict.undecided
    )
    show_document(shown, verdict.document(), json)
    show_notes([] if quiet else verdict.notes())
    if verdict.undecided and strict:
        raise NoisyError("a run was too disturbed to decide", "measure again on an idle machine")
    return verdict.exit_code()
