"""What calibration tells of a stencil's sides: software cost of an element, scale of its memory.

Equation: an element costs a thread max(t_soft, s·m), or t_soft + s·m where nothing hides the loads
or where t_soft was measured as what the sweep takes beyond a copy. m is the memory term of `split`.
Source: one measured row of the same version; or sweep and copy, both measured on the near side.
Limits: one number for all sizes and thread counts. What the near side pays beyond a copy is taken
for what the far side pays.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cost:
    """What calibration tells of one side: seconds an element a thread, and a scale of memory."""

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
    """Everything one measured row gives."""

    near: Cost = Cost()
    far: Cost = Cost()
    skew: float = 1.0
    #: measured rows behind it
    rows: int = 0
    level: int = 0


def beyond_a_copy(element_s: float, copy_s: float) -> Calibration:
    """What an element of the sweep took beyond a copied one, both measured by themselves on the
    near side: either side pays it on top of its memory term. A sweep that beats the copy lowers the
    near side's term instead.
    """
    beyond = element_s - copy_s
    if beyond < 0:
        return Calibration(near=Cost(0.0, element_s / copy_s), level=1)
    cost = Cost(beyond, adds=True)
    return Calibration(near=cost, far=cost, level=1)


def software_cost(far_s: float) -> Calibration:
    """What the far accessor's cost of an element, measured by itself, gives."""
    return Calibration(far=Cost(far_s), level=1)
