"""The published JSON Schema of ``run.json``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from test_store import measured_run

ROOT = Path(__file__).parent.parent
PUBLISHED = ROOT / "docs" / "formats" / "run.schema.json"


def test_the_published_schema_is_current(tmp_path: Path) -> None:
    written = tmp_path / "schema.json"
    subprocess.run(
        [sys.executable, ROOT / "tools" / "write_schema.py", written], check=True, timeout=60
    )
    assert PUBLISHED.read_text() == written.read_text(), "run `make schema` and commit the result"


def test_a_record_satisfies_the_published_schema() -> None:
    schema = json.loads(PUBLISHED.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    document = json.loads(measured_run().model_dump_json(exclude_none=True))
    jsonschema.validate(document, schema)
    document["seed"] = "many"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema)
