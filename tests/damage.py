"""Random damage to pools, the same for the same seed."""

from __future__ import annotations

import random

#: Offsets where a pool of 1024 lanes keeps what it cannot do without; ends are exclusive.
_HEAP = 0x302000
_PARTS = (
    (0, 4096),  # header
    (4096, 8192),  # descriptor and what follows it
    (8192, 8192 + 40 * 3072),  # the first lanes
    (8192, _HEAP),  # any lane
    (_HEAP, _HEAP + 1024),  # heap header
    (_HEAP + 1024, _HEAP + 1024 + 64),  # zone header
    (_HEAP + 1088, _HEAP + 1088 + 8 * 64),  # chunk headers
)
_CHUNKS = _HEAP + 1088 + 8 * 65528
_CHUNK = 262144


def _place(chance: random.Random, size: int) -> int:
    kind = chance.randrange(len(_PARTS) + 2)
    if kind < len(_PARTS):
        return chance.randrange(*_PARTS[kind])
    if kind == len(_PARTS):  # the head of a run, its bitmap, or the header of a large object
        chunk = chance.randrange((size - _CHUNKS) // _CHUNK)
        return _CHUNKS + chunk * _CHUNK + chance.randrange(256)
    return chance.randrange(size)


def _hurt(image: bytearray, chance: random.Random) -> None:
    at = _place(chance, len(image))
    kind = chance.randrange(5)
    if kind == 0:
        image[at] ^= 1 << chance.randrange(8)
    elif kind == 1:
        image[at] = chance.randrange(256)
    elif kind == 2:
        at = at // 8 * 8
        word = chance.choice([0, 1, 2**64 - 1, len(image), chance.getrandbits(64)])
        image[at : at + 8] = word.to_bytes(8, "little")
    elif kind == 3:
        length = min(chance.choice([16, 64, 512, 4096]), len(image) - at)
        image[at : at + length] = chance.randbytes(length)
    else:
        length = min(chance.choice([64, 4096, 65536]), len(image) - at)
        image[at : at + length] = bytes(length)


def damaged(whole: bytes, seed: int) -> bytes:
    """One to four random wounds; one pool in twenty is cut short as well."""
    chance = random.Random(seed)
    image = bytearray(whole)
    for _ in range(chance.randrange(1, 5)):
        _hurt(image, chance)
    if chance.randrange(20) == 0:
        del image[chance.randrange(len(image)) :]
    return bytes(image)
