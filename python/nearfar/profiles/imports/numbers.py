"""Numbers in outputs of other tools: whole words, in ranges that a memory can have."""

from __future__ import annotations

import re
from dataclasses import dataclass

from nearfar.errors import BadInputError

_NUMBER = re.compile(r"[0-9]{1,20}(\.[0-9]{1,20})?")


@dataclass(frozen=True)
class Quantity:
    """Unit of a number: as printed, how many of the profile's unit that is, and its
    range in the profile's unit."""

    name: str
    unit: str
    scale: float
    low: float
    high: float

    def read(self, word: str, where: str) -> float:
        """The number in the profile's unit; ``where`` begins the message if it is refused.

        Raises BadInputError unless the whole word is a number of this quantity, so that neither a
        number cut at a comma nor a part of a version is taken for a figure.
        """
        shown = word if len(word) <= 40 else f"{word[:40]}…"
        if not _NUMBER.fullmatch(word):
            raise BadInputError(
                f"{where}: {shown!r} is not a {self.name} in {self.unit}",
                "write it in digits with a decimal point, without separators or exponent",
            )
        value = float(word) * self.scale
        if not self.low <= value <= self.high:
            raise BadInputError(
                f"{where}: no memory has a {self.name} of {shown} {self.unit}",
                f"correct it, or leave it out; the unit is {self.unit}",
            )
        return value


#: Less than a load from the fastest cache, more than a block from a disk.
LATENCY = Quantity("latency", "ns", 1, 0.1, 1e8)
#: Less than a floppy disk, and twice what the fastest accelerator has, so that a wrong unit is
#: refused.
_BANDWIDTHS = (1e3, 2e13)
RATE = Quantity("bandwidth", "MB/s", 1e6, *_BANDWIDTHS)
