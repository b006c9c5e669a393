"""Write the JSON Schema of ``run.json`` to the file that is named."""

import json
import sys
from pathlib import Path

from nearfar.records.run import Run


def main(target: Path) -> None:
    """Write the schema of what is stored, which is what a reader meets."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **Run.model_json_schema(mode="serialization"),
    }
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(schema, indent=2) + "\n", encoding="utf-8")


main(Path(sys.argv[1]))
