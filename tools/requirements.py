"""Print requirements of pyproject.toml, one a line: any of ``build``, ``run`` and ``test``."""

import sys
import tomllib
from pathlib import Path


def main() -> None:
    """Print the groups named on the command line."""
    document = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())
    groups = {
        "build": document["build-system"]["requires"],
        "run": document["project"]["dependencies"],
        "test": document["project"]["optional-dependencies"]["test"],
    }
    for name in sys.argv[1:]:
        print("\n".join(groups[name]))


main()
