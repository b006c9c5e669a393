"""A picture of a command's output in a terminal, as SVG.

Usage: terminal_picture.py PICTURE.svg 'SHOWN COMMAND' -- COMMAND...

The shown command stands for the one that runs, which may have longer paths. Notes below the tables
are cut; ``...`` stands for them. Standard error is not shown. ``make pictures`` calls this.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

WIDTH = 100
#: Start of a note below the tables of a result.
_NOTE = "· "


def output_of(command: list[str]) -> str:
    """Run a command as if in a terminal of WIDTH columns; its output with colors."""
    environment = {
        **os.environ,
        "FORCE_COLOR": "1",
        "COLUMNS": str(WIDTH),
        "TERM": "xterm-256color",
    }
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    return done.stdout


def picture(shown: str, output: str) -> str:
    """Return the SVG: the prompt with the command, and the output. It loads no fonts."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Text.assemble(("$ ", "green"), (shown, "bold")))
    for line in output.rstrip().splitlines():
        text = Text.from_ansi(line)
        if text.plain.startswith(_NOTE):
            console.print(Text("..."))
            break
        console.print(text, soft_wrap=True)
    svg = console.export_svg(title="nearfar", unique_id="terminal")
    return re.sub(r"@font-face \{.*?\}\s*|<!--.*?-->\s*", "", svg, flags=re.DOTALL)


def main() -> None:
    """Write the picture."""
    target, shown, dashes, *command = sys.argv[1:]
    if dashes != "--":
        sys.exit(__doc__)
    Path(target).write_text(picture(shown, output_of(command)) + "\n")


if __name__ == "__main__":
    main()
