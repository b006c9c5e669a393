"""Fixtures of tests of real hardware. Each skips, with its reason, on a machine without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from nearfar.machine.model import Machine
from nearfar.machine.topology import this_machine

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker("hardware")


@pytest.fixture(scope="session")
def here() -> Machine:
    """This machine."""
    return this_machine()
