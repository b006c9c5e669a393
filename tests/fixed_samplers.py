"""A sampler with fixed samples and data, in place of one of a run."""

from __future__ import annotations

from typing import Any

import numpy as np

from nearfar.place.sample_records import SAMPLE_FIELDS

PROGRAM = (b"/bin/program", "ab" * 20)


class FixedSampler:
    """Samples and regions of a sampler, as values."""

    def __init__(self, data: list[dict[str, Any]], regions: list[tuple[int, int, int, str]]):
        self._data = [place(), *data]
        self._regions = regions

    def bursts(self) -> list[int]:
        return []

    def data(self) -> list[dict[str, Any]]:
        return self._data

    def logged(self) -> list[int]:
        has_call = any(place["frames"] and place["frames"][0][1] for place in self._data)
        return [7] if has_call else []

    def files(self) -> list[tuple[bytes, str]]:
        return [(b"", ""), PROGRAM, (b"/dev/shm/shared (deleted)", "")]

    def regions(self) -> list[tuple[int, int, int, bytes, bool]]:
        of_programs = {PROGRAM[0]}
        return [
            (pid, begin, end, name.encode(), name.encode() in of_programs)
            for pid, begin, end, name in self._regions
        ]


def place(kind: str = "unknown", *frames: tuple[int, int], **others: Any) -> dict[str, Any]:
    plain = {"begin": 0, "bytes": 0, "name": "", "allocations": 0, "allocated_bytes": 0}
    plain |= {"least_bytes": 0}
    return {"kind": kind, "frames": list(frames), **plain, "peak_bytes": 0, "held": [], **others}


def samples(*groups: tuple[int, np.ndarray, int], process: int = 7) -> np.ndarray:
    """Groups of samples: kind, addresses, place of data."""
    made = []
    for kind, addresses, data in groups:
        part = np.zeros(len(addresses), SAMPLE_FIELDS)
        part["kind"], part["address"], part["data"] = kind, addresses, data
        part["process"], part["period"] = process, 1
        part["time_ns"] = np.arange(len(addresses))
        made.append(part)
    return np.concatenate(made)


class SamplerOfAProgram(FixedSampler):
    """Also its samples, and the instructions that they are at: loads of 8 bytes."""

    def __init__(
        self,
        data: list[dict[str, Any]],
        seen: np.ndarray,
        offsets: list[int],
        stores: int = 0,
        bursts: list[int] | None = None,
    ) -> None:
        super().__init__(data, [])
        self._bursts = bursts or []
        self._seen, self._offsets, self._stores = seen, offsets, stores

    def bursts(self) -> list[int]:
        return self._bursts

    def samples(self) -> bytes:
        return self._seen.tobytes()

    def code(self) -> list[dict[str, Any]]:
        plain = {"file": 1, "access": 0, "bytes": 8, "is_string": False}
        others = {"follows_pointer": False, "is_readable": True}
        return [
            {**plain, **others, "offset": offset, "is_load": not is_store, "is_store": is_store}
            for offset, is_store in ((at, at >= self._stores > 0) for at in self._offsets)
        ]
