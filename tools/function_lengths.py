"""Print the Python functions of more than LIMIT lines of code, and their number.

Usage: function_lengths.py [--names] [LIMIT]

Lines of code are those of the body that have code: no docstring, comment or blank line, and not the
signature, in which Typer wants a verb's flags.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from pathlib import Path

ROOT = Path(__file__).parent.parent
_NOT_CODE = (
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
)


def lengths(text: str) -> dict[str, int]:
    """Lines of code by function."""
    lines = {
        line
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in _NOT_CODE
        for line in range(token.start[0], token.end[0] + 1)
    }
    found = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            last = node.end_lineno or node.lineno
            found[f"{node.lineno}: {node.name}"] = (
                sum(body[0].lineno <= line <= last for line in lines) if body else 0
            )
    return found


def main(arguments: list[str]) -> None:
    """Print what was asked for."""
    limit = next((int(word) for word in arguments if word.isdigit()), 30)
    for folder in ("python", "tools", "tests", "benchmarks"):
        long = [
            f"{lines:4} {file.relative_to(ROOT)}:{name}"
            for file in sorted((ROOT / folder).rglob("*.py"))
            for name, lines in lengths(file.read_text()).items()
            if lines > limit
        ]
        if "--names" in arguments:
            print("\n".join(long))
        print(f"{folder}: {len(long)} functions of more than {limit} lines of code")


if __name__ == "__main__":
    main(sys.argv[1:])
