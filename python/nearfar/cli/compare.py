"""``nearfar compare``: two runs, or two profiles, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nearfar.cli.options import Json

if TYPE_CHECKING:
    from nearfar.records.compare import Change, Comparison
    from nearfar.records.walk import Quantity


def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="The base: a run, a profile or a host.")],
    b: Annotated[str, typer.Argument(metavar="B", help="What is compared with it.")],
    threshold: Annotated[
        str,
        typer.Option(
            "--threshold", metavar="SHARE", help="How much worse is too much, as 5% or 0.05."
        ),
    ] = "5%",
    json: Json = None,
) -> int:
    """Put the same figures of two runs, or of two profiles, side by side.

    Exits with 1 if a figure of B is worse than A's by more than the threshold: a longer latency or
    time, a lower bandwidth, a higher price or energy. Where both sides have intervals these must
    lie apart, too. Sizes, counts and ratios are shown and decide nothing, nor does a run that was
    too noisy: then the differences are shown, and the exit code is 0.

    Examples:

        nearfar compare nearfar-runs/20250102T030405Z-study nearfar-runs/20250103T030405Z-study

        nearfar compare ddr4 optane-100 --threshold 20%
    """
    from nearfar.cli.console import note, print_result, write_json
    from nearfar.cli.subjects import compared, load
    from nearfar.errors import BadInputError, ExitCode
    from nearfar.records.run import Run
    from nearfar.report.text.comparison import comparison
    from nearfar.units import parse_share

    limit = parse_share(threshold)
    sides = load(a), load(b)
    found = compared(*sides)
    if not found.changes:
        raise BadInputError(
            f"{a} and {b} have no figure in common",
            "compare runs of the same verb and tiers, or profiles that share keys",
        )
    noisy = [
        name for name, side in zip((a, b), sides, strict=True)
        if isinstance(side, Run) and side.noise and side.noise.noisy
    ]  # fmt: skip
    if json is not None:
        write_json(json, _document(found, limit, a, b, noisy))
    if json != "-":
        print_result(comparison(found, limit, (_short(a), _short(b)), noisy=bool(noisy)))
    for name in noisy:
        note(f"{name} was too noisy: its figures prove no change, so nothing is decided")
    return ExitCode.VIOLATION if found.worse(limit) and not noisy else ExitCode.OK


def _short(name: str) -> str:
    return name.rstrip("/").removesuffix("/run.json").rsplit("/", 1)[-1]


def _document(found: Comparison, threshold: float, a: str, b: str, noisy: list[str]) -> str:
    import json

    return json.dumps(
        {
            "a": a,
            "b": b,
            "threshold": threshold,
            "too_noisy": noisy,
            "worse": len(found.worse(threshold)),
            "figures": [_change(change, threshold) for change in found.changes],
            "only_a": [_named(quantity) for quantity in found.only_before],
            "only_b": [_named(quantity) for quantity in found.only_now],
        },
        indent=1,
    )


def _named(quantity: Quantity) -> dict[str, object]:
    from nearfar.report.text.comparison import figure_name

    return {
        "figure": figure_name(quantity),
        "path": quantity.path,
        "key": quantity.key,
        "conditions": dict(quantity.conditions),
    }


def _change(change: Change, threshold: float) -> dict[str, object]:
    from nearfar.records.compare import better

    sides = {"a": change.before, "b": change.now}
    ratio = change.ratio()
    return {
        **_named(change.now),
        **{side: quantity.value for side, quantity in sides.items()},
        "ratio": ratio if ratio < float("inf") else None,
        "intervals": {s: q.interval for s, q in sides.items() if q.interval},
        "provenance": {
            s: q.provenance.model_dump(mode="json") for s, q in sides.items() if q.provenance
        },
        "intervals_overlap": change.agree(),
        "better": better(change.now.key),
        "worse": change.worse(threshold),
    }
