"""Results of ``nearfar place``: pages of a running program, moved to the nodes of tiers."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nearfar.records.figures import Amount, Count, ObservationModel

#: Why a page is not on its tier.
Refusal = Literal["busy", "shared", "no memory", "capacity", "absent", "zero page", "other"]
#: Why placing ended.
Ending = Literal["done", "time", "interrupted", "program ended", "program replaced"]


class RefusedPages(ObservationModel):
    """Pages that a rule places and that did not move, at the last look."""

    reason: Refusal
    size_bytes: Count


class RulePlacement(ObservationModel):
    """Memory that a rule of the plan places, at the last look."""

    rule: Count = Field(description="number of the rule, from 1")
    line: Count
    text: str
    tier: str
    region_count: Count
    wanted_bytes: Count = Field(description="in memory")
    placed_bytes: Count = Field(description="of these, on the tier")
    moved_bytes: Count = Field(description="during all looks")


class RegionPlacement(ObservationModel):
    """A region of the program that rules place, at the last look."""

    address: str
    what: str = Field(description="the region as a condition of a rule")
    size_bytes: Count = Field(description="of address space")
    wanted_bytes: Count
    placed_bytes: Count
    tiers: list[str]


class UnappliedRule(ObservationModel):
    """A rule that cannot be applied from outside the program."""

    rule: Count
    line: Count
    text: str
    why: str


class MovingSetting(ObservationModel):
    """A setting of the kernel that moves pages, and the command that turns it off."""

    path: str
    value: str
    command: str


class PlacementResult(ObservationModel):
    """Pages of a running program. Bytes are those of pages in memory."""

    pid: Count
    program: str
    plan: str | None = None
    tiers: dict[str, str] = Field(default_factory=dict)
    reverted: str | None = Field(default=None, description="record that was reverted")
    ended: Ending
    complete: bool = Field(description="the last look reached all regions")
    looks: Count
    attached_s: Amount = Field(description="how long it was attached")
    wanted_bytes: Count = Field(description="that rules place, at the last look")
    placed_bytes: Count = Field(description="of these, on their tier")
    moved_bytes: Count = Field(description="during all looks")
    refused: list[RefusedPages] = Field(default_factory=list)
    rules: list[RulePlacement] = Field(default_factory=list)
    regions: list[RegionPlacement] = Field(
        default_factory=list, description="the largest, most memory first"
    )
    unapplied: list[UnappliedRule] = Field(default_factory=list)
    undone_bytes: Count = Field(
        default=0, description="moved, and found on another node at the next look"
    )
    moving_settings: list[MovingSetting] = Field(
        default_factory=list, description="settings of the kernel that move pages"
    )
    children: Count = Field(default=0, description="processes it has started, which are not placed")
