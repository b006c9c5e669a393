"""``nearfar crash replay``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nearfar.cli import flags
from nearfar.cli.crash import _exploring


def replay(
    image: Annotated[Path, typer.Argument(metavar="IMAGE", help="A failing image that was kept.")],
    json: flags.Json = None,
) -> int:
    """Run recovery and its check again on a failing image.

    Exits with 1 if the image fails again, and with 0 if it passes.

    Examples:

        nearfar crash replay nearfar-crash-1/1.image
    """
    import tempfile

    from nearfar.cli.crash.run import checker_arguments
    from nearfar.verify.images import story_of

    story = story_of(image)
    moment = {key: int(story[key]) for key in ("acknowledged", "in_flight", "finished")}
    with tempfile.TemporaryDirectory(prefix="nearfar-crash-") as work:
        if story["verb"] == "check":
            asked = {key: story[key] for key in ("structure", "n", "seed", "platform")}
            result = _exploring.explore("replay", {**asked, **moment, "image": image}, True)
        else:
            result = _exploring.explore(
                "run",
                {
                    "kept": image,
                    "image": Path(work) / "image",
                    "output": Path(work) / "output",
                    "limit_ms": story["limit_ms"],
                    **moment,
                    **checker_arguments(story["checker"]),
                },
                True,
            )
    result.states = 1
    result.findings = [finding for finding in result.findings if finding.failure != "none"]
    result.violations = len(result.findings)
    return _exploring.show(result, {"verb": "crash replay", "image": str(image)}, json)
