"""This machine as a host at this moment: nothing is stored, and nothing that is stored is read."""

from __future__ import annotations

from collections.abc import Sequence

from nearfar.measure.host import HostMeter
from nearfar.measure.progress import silent
from nearfar.records.profile import Host
from nearfar.workflows.recording import open_session


def host_now(cpu: int, tiers: Sequence[str], epochs: int = 3) -> Host:
    """The host with these memories, measured now."""
    with open_session(silent) as session:
        meter = HostMeter(session, cpu, tiers)
        for _ in range(epochs):
            meter.epoch()
        return meter.host()
