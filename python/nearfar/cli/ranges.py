"""Upper limits of numeric flags, by the meaning of the number.

Each numeric flag declares a minimum and a maximum, so that the command line rejects a number that
the native core cannot represent.
"""

from __future__ import annotations

from nearfar.units import LONGEST_S

#: The core stores seeds of maps in 32 bits, and each repeat adds its number to the seed.
MAX_SEED = 2**31 - 1
#: More than the CPUs that Linux supports.
MAX_THREADS = 2**16
#: Repeats, and warm-up repeats.
MAX_REPEATS = 10**6
#: Rows, columns, entries, operations: multiplied by the bytes of one, it fits in 64 bits.
MAX_COUNT = 10**12
#: Bytes of one element or one value.
MAX_ELEMENT_BYTES = 2**20
#: Operations, or images, of a crash exploration, whose log is held in memory.
MAX_OPERATIONS = 10**6
#: Nanoseconds of one instruction or of one element.
MAX_NS = 1e9
#: Seconds of CPU time.
MAX_SECONDS = LONGEST_S
