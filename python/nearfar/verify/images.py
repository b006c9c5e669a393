"""Kept crash images: the bytes, and a file next to each with its origin and moment."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from nearfar.errors import BadInputError, MachineError
from nearfar.files import read_json
from nearfar.verify.findings import Exploration


def folder_for(wanted: Path | None) -> Path:
    """An empty or new folder for images; by default a new one in the current directory."""
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
    """Write the origin of each image next to it."""
    refused: dict[str, None] = {}
    for i, finding in enumerate(result.findings):
        if not finding.image:
            continue
        image = Path(finding.image)
        description = {
            "schema_version": 1,
            **origin,
            "directory": str(Path.cwd()),
            "image_bytes": image.stat().st_size,
            "acknowledged": finding.acknowledged,
            "in_flight": finding.in_flight,
            "finished": finding.finished,
            "failure": finding.failure,
            "caches_lost": finding.caches_lost,
            **({"operations": finding.operations} if finding.operations else {}),
        }
        try:
            image.with_suffix(".json").write_text(json.dumps(description, indent=1) + "\n", "utf-8")
        except OSError as error:
            refused[f"cannot describe the images in {folder}: {error.strerror}"] = None
            continue
        result.findings[i] = replace(finding, replay=f"nearfar crash replay {image}")
    result.warnings += refused


def description_of(image: Path) -> dict[str, Any]:
    """Read the description of an image. Raises BadInputError if it or the image is damaged."""
    if not image.name:
        raise BadInputError(f"'{image}' is not an image", "name a file that nearfar crash kept")
    description = read_json(
        image.with_suffix(".json"),
        "give an image that nearfar crash kept, with the .json file next to it",
    )
    if (
        not isinstance(description, dict)
        or description.get("schema_version") != 1
        or "verb" not in description
    ):
        raise BadInputError(
            f"{image.with_suffix('.json')} does not describe an image", "replay another"
        )
    if image.exists() and description.get("image_bytes") not in (None, image.stat().st_size):
        raise BadInputError(
            f"{image} has {image.stat().st_size:,} bytes, and not the "
            f"{description['image_bytes']:,} of the image that was kept",
            "replay another",
        )
    return description
