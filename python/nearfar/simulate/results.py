"""What simulations return: plain numbers with their origin, and the parts they are the sum of."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nearfar.records.shape import Amount, Answer, Count, Shaped

PagePolicy = Literal["closed"]
WritePolicy = Literal["blocking", "posted"]


class TierWork(Shaped):
    """What one tier did: its accesses of 64 B, the time they held the program, their energy."""

    device: str
    reads: Count
    writes: Count
    read_time_s: Amount
    write_time_s: Amount
    read_energy_J: Amount  # noqa: N815 - the joule is a capital
    write_energy_J: Amount  # noqa: N815
    standby_energy_J: Amount  # noqa: N815
    refresh_energy_J: Amount  # noqa: N815


class Tiers(Shaped):
    """Both tiers."""

    near: TierWork
    far: TierWork


class CountsSimulation(Answer):
    """A program told by its counts alone."""

    page_policy: PagePolicy
    write_policy: WritePolicy
    time_s: Amount = Field(description="processor and memory, one after the other")
    energy_J: Amount = Field(description="of both memories over time_s")  # noqa: N815
    cpu_time_s: Amount
    memory_time_s: Amount
    tiers: Tiers
