"""Kept images: the bytes a crash left, and beside them how to replay the failure."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from nearfar.errors import BadInputError, MachineError
from nearfar.verify.findings import Exploration


def folder_for(wanted: Path | None) -> Path:
    """An empty or new folder for images; by default a fresh one in the current directory."""
    folder = wanted
    number = 1
    while folder is None:
        folder = Path(f"nearfar-crash-{number}")
        if folder.exists():
            folder, number = None, number + 1
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInputError(f"{folder} is not empty", "name a new folder after --images")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MachineError(
            f"cannot make {folder}: {error.strerror}", "name another folder after --images"
        ) from None
    return folder


def keep(result: Exploration, folder: Path, origin: dict[str, object]) -> None:
    """Write how each image came about beside it; drops the folder if there is none."""
    if not any(finding.image for finding in result.findings):
        folder.rmdir()
    for i, finding in enumerate(result.findings):
        if not finding.image:
            continue
        image = Path(finding.image)
        story = {
            "schema_version": 1,
            **origin,
            "acknowledged": finding.acknowledged,
            "in_flight": finding.in_flight,
            "finished": finding.finished,
            "failure": finding.failure,
        }
        try:
            image.with_suffix(".json").write_text(json.dumps(story, indent=1) + "\n", "utf-8")
        except OSError as error:
            result.warnings.append(f"cannot tell how {image} came about: {error.strerror}")
            continue
        result.findings[i] = replace(finding, replay=f"nearfar crash replay {image}")


def story_of(image: Path) -> dict[str, Any]:
    """What was written beside an image. Raises BadInputError where it is missing or damaged."""
    try:
        story = json.loads(image.with_suffix(".json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInputError(
            f"cannot read how {image} came about: {error}",
            "give an image that nearfar crash kept, with the .json file beside it",
        ) from None
    if not isinstance(story, dict) or story.get("schema_version") != 1 or "verb" not in story:
        raise BadInputError(
            f"{image.with_suffix('.json')} is no story of an image", "replay another"
        )
    return story
