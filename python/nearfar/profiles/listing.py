"""All device profiles and hosts that verbs take by name, with their main figures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from nearfar.errors import BadInputError, MachineError
from nearfar.profiles import THIS, host_names, profile_names, shipped_file, stored_host
from nearfar.profiles.sheets import read_datasheet
from nearfar.records.profile import Datasheet, Figure, Host
from nearfar.records.profile_list import ListedProfile


def listed() -> list[ListedProfile]:
    """Shipped device profiles, then shipped hosts, then hosts that were measured and stored.

    Raises BadInputError for a damaged shipped file; a damaged stored one is listed as such.
    """
    shipped = [
        *(shipped_file("devices", name) for name in profile_names()),
        *(shipped_file("hosts", name) for name in host_names() if name != THIS),
    ]
    rows = [_row(read_datasheet(file), file.stem, file, "shipped") for file in shipped]
    return [*rows, *_stored()]


def _stored() -> Iterator[ListedProfile]:
    from nearfar.profiles.this_host import this_host

    own = this_host().machine or ""
    try:
        folder = stored_host.path_of(own).parent
    except MachineError:  # no home directory
        return
    for file in sorted(folder.glob("*.toml")):
        name = THIS if file.stem == own else str(file)
        try:
            host = read_datasheet(file)
        except (BadInputError, OSError):
            yield ListedProfile(
                name=name,
                kind="host",
                title="damaged",
                read_latency_ns=None,
                bandwidth_bytes_per_s=None,
                origin="stored",
                file=str(file),
            )
            continue
        when = host.measured.ended[:10] if isinstance(host, Host) and host.measured else "unknown"
        yield _row(host, name, file, f"measured {when}")


def _row(sheet: Datasheet, name: str, file: Path, origin: str) -> ListedProfile:
    figures = sheet.figures
    if isinstance(sheet, Host):
        figures = next(iter(sheet.memories.values()), {})
    latency = figures.get("read_latency_ns")
    return ListedProfile(
        name=name,
        kind=sheet.kind,
        title=sheet.title,
        read_latency_ns=latency.value if latency else None,
        bandwidth_bytes_per_s=_bandwidth(figures),
        origin=origin,
        file=str(file),
    )


def _bandwidth(figures: dict[str, Figure]) -> float | None:
    """Read bandwidth: the figure itself, or the highest of its curve by threads."""
    if known := figures.get("read_bandwidth_bytes_per_s"):
        return known.value
    curve = figures.get("read_bandwidth_by_threads_bytes_per_s")
    return max(point[-1] for point in curve.points) if curve and curve.points else None
