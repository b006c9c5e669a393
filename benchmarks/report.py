"""Processor time of the report of a program with 5,000 sites (synthetic record): under 5 s.

Run it as `.venv/bin/python benchmarks/report.py`, with another number of sites as its argument.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import factories
from nearfar.report.html.page import render

LIMIT_S = 5.0


def main() -> int:
    """Print the time; 1 if it is over the limit."""
    sites = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    run = factories.advised(sites)
    begin = time.process_time()
    page = render(run)
    took_s = time.process_time() - begin
    print(f"{sites} sites: page of {len(page) / 1e6:.1f} MB in {took_s:.2f} s of processor time")
    return 0 if took_s < LIMIT_S else 1


if __name__ == "__main__":
    sys.exit(main())
