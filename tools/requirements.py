"""Print requirements of pyproject.toml, one a line: ``build``, ``run``, or an extra's name."""

import sys
import tomllib
from pathlib import Path


def main() -> None:
    """Print the groups named on the command line."""
    document = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())
    groups = {
        "build": document["build-system"]["requires"],
        "run": document["project"]["dependencies"],
        **document["project"]["optional-dependencies"],
    }
    for name in sys.argv[1:]:
        print("\n".join(groups[name]))


main()
