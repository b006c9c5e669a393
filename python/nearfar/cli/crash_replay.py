"""``nearfar crash replay``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nearfar.cli import exploring, options


def replay(
    image: Annotated[Path, typer.Argument(metavar="IMAGE", help="An image that was kept.")],
    json: options.Json = None,
) -> int:
    """Run recovery and its check once more on an image that failed.

    Exits with 1 if it fails again, with 0 if it is good now: the code was mended.

    Examples:

        nearfar crash replay nearfar-crash-1/1.image
    """
    import tempfile

    from nearfar.cli.crash_run import checker_arguments
    from nearfar.verify.images import story_of

    story = story_of(image)
    moment = {key: int(story[key]) for key in ("acknowledged", "in_flight", "finished")}
    with tempfile.TemporaryDirectory(prefix="nearfar-crash-") as work:
        if story["verb"] == "check":
            asked = {key: story[key] for key in ("structure", "n", "seed", "platform")}
            result = exploring.explore("replay", {**asked, **moment, "image": image}, True)
        else:
            result = exploring.explore(
                "run",
                {"kept": image, "image": Path(work) / "image", "output": Path(work) / "output",
                 "limit_ms": story["limit_ms"], **moment, **checker_arguments(story["checker"])},
                True,
            )  # fmt: skip
    result.states = 1
    result.findings = [finding for finding in result.findings if finding.failure != "none"]
    result.violations = len(result.findings)
    return exploring.show(result, {"verb": "crash replay", "image": str(image)}, json)
