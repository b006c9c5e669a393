"""Calibration of a stencil's sides: software cost of an element, scale of its memory term.

Equation: an element costs a thread max(t_soft, s·m), or t_soft + s·m where nothing hides the loads
or where t_soft was measured as what the sweep takes beyond a copy. m is the memory term of `split`.
Source: one measured row of the same version; or sweep and copy, both measured on the near side.
Limits: one number for all sizes and thread counts. The far side's cost beyond a copy is assumed to
equal that of the near side.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cost:
    """Calibration of one side: seconds an element and thread, and a scale of the memory term."""

    software_s: float = 0.0
    memory_scale: float = 1.0
    #: whether software comes on top of the memory term, hidden by nothing
    adds: bool = False

    def of_element(self, memory_s: float, *, waits: bool) -> float:
        """Seconds of a thread for one element whose memory term is ``memory_s``."""
        scaled = self.memory_scale * memory_s
        return self.software_s + scaled if waits or self.adds else max(self.software_s, scaled)

    @staticmethod
    def measured(element_s: float, memory_s: float, *, waits: bool) -> Cost:
        """The cost that makes an element take exactly ``element_s``."""
        if element_s < memory_s:
            return Cost(0.0, element_s / memory_s)
        return Cost(element_s - memory_s if waits else element_s)


@dataclass(frozen=True)
class Calibration:
    """Calibration from one measured row."""

    near: Cost = Cost()
    far: Cost = Cost()
    skew: float = 1.0
    #: measured rows behind it
    rows: int = 0
    level: int = 0


def beyond_a_copy(element_s: float, copy_s: float) -> Calibration:
    """The time of an element of the sweep beyond a copied one, both measured alone on the near
    side: either side adds it to its memory term. A sweep faster than the copy lowers the near
    side's term instead.
    """
    beyond = element_s - copy_s
    if beyond < 0:
        return Calibration(near=Cost(0.0, element_s / copy_s), level=1)
    cost = Cost(beyond, adds=True)
    return Calibration(near=cost, far=cost, level=1)


def software_cost(far_s: float) -> Calibration:
    """Calibration from the far accessor's measured cost of an element."""
    return Calibration(far=Cost(far_s), level=1)
