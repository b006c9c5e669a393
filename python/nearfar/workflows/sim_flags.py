"""For each source of ``nearfar sim``, the flags that affect it. Other flags are errors."""

from __future__ import annotations

from collections.abc import Mapping

from nearfar.errors import BadInputError

_DEVICES = frozenset({"near", "far"})
#: Settings of the memory controllers.
CONTROLLER = frozenset(
    {
        *("page_policy", "row_timeout", "scheduler", "row_hit_cap", "write_drain"),
        *("mapping", "power_down_after", "self_refresh_after"),
    }
)
_STREAM = (
    _DEVICES
    | {
        "placement",
        "place",
        "near_size",
        "engine",
        "core",
        "window",
        "threads",
        "write_policy",
    }
    | CONTROLLER
)
_ALWAYS = frozenset({"json", "csv", "quiet", "out"})
#: By the parameter that selects a source: its name in messages, and the flags that affect it.
_SOURCES = {
    "trace": ("a trace", _STREAM | {"instruction_ns", "truncated"}),
    "counts": ("--counts", _DEVICES | {"page_policy", "write_policy", "cpu_time_s"}),
    "pattern": ("--pattern", _STREAM | {"requests", "size", "write_share", "seed"}),
    "curve": ("--curve", {"far", "engine", "requests", "write_share", "seed"} | CONTROLLER),
    "experiment": ("--experiment", set()),
}


def refuse_ignored(flags: Mapping[str, str]) -> None:
    """Raise BadInputError unless exactly one source is given, and all other flags affect it."""
    named = [name for name in _SOURCES if name in flags]
    if len(named) != 1:
        raise BadInputError(
            f"{' and '.join(_SOURCES[name][0] for name in named)} were given"
            if named
            else "there is nothing to simulate",
            "give one of: a trace, --counts FILE.json, --pattern P, --curve, --experiment seoul",
        )
    called, taken = _SOURCES[named[0]]
    for name, flag in flags.items():
        if name not in {*named, *taken, *_ALWAYS}:
            where = [other for other, takes in _SOURCES.values() if name in takes]
            raise BadInputError(
                f"{flag} has no effect with {called}",
                f"omit it; it has an effect with {' and '.join(where)}",
            )
