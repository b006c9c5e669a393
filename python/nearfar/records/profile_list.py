"""Rows of ``nearfar profile list``: the device profiles and hosts that can be named."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nearfar.records.figures import ObservationModel


class ListedProfile(ObservationModel):
    """A device profile or a host; figures are absent if the file lacks them."""

    name: str = Field(description="as other verbs take it, or the path of the file")
    kind: Literal["device", "host"]
    title: str
    read_latency_ns: float | None = Field(
        None, description="random reads; of a measured host its first memory"
    )
    bandwidth_bytes_per_s: float | None = Field(None, description="reads")
    origin: str = Field(description="shipped, or measured on this machine and when")
    file: str
