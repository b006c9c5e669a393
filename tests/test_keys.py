"""The table of numeric keys: every key of the schema has a unit and a direction."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from pydantic import BaseModel

import nearfar
from nearfar.comparison.direction import better
from nearfar.profiles import host_names, load_host, load_profile, profile_names
from nearfar.records.figures import FigureModel
from nearfar.records.keys import KEYS
from nearfar.records.profile import unit_of
from nearfar.records.run import Run

#: Ends of keys and the units that they carry, the longest first.
_ENDS = {
    "bytes_per_s": "B/s",
    "_per_s": "1/s",
    "_bytes": "B",
    "_ns": "ns",
    "_s": "s",
    "_J": "J",
    "_years": "years",
    "_per_gib": "1/GiB",
    "_ratio": "ratio",
    "_share": "ratio",
}


def models_in(kind: object, seen: list[type[BaseModel]]) -> list[type[BaseModel]]:
    """Models that a type is made of, itself first."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        if kind not in seen:
            seen.append(kind)
            for field in kind.model_fields.values():
                models_in(field.annotation, seen)
    else:
        for part in typing.get_args(kind):
            models_in(part, seen)
    return seen


def _is_numeric(kind: object) -> bool:
    if typing.get_origin(kind) is dict:
        return False
    return kind in (int, float) or any(_is_numeric(part) for part in typing.get_args(kind))


def numeric_keys(models: list[type[BaseModel]]) -> set[str]:
    return {
        key
        for model in models
        for key, field in model.model_fields.items()
        if _is_numeric(field.annotation)
    }


def _subclasses(base: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for model in base.__subclasses__():
        yield model
        yield from _subclasses(model)


def schema() -> set[str]:
    """Numeric keys of records and of all other results; the description of the machine has none."""
    package = Path(str(nearfar.__file__)).parent
    for file in (f for f in package.rglob("*.py") if f.name != "__init__.py"):
        import_module(".".join(("nearfar", *file.relative_to(package).with_suffix("").parts)))
    models = models_in(Run, [])
    for model in _subclasses(FigureModel):
        if model.__module__.startswith("nearfar.") and "nearfar.machine" not in model.__module__:
            models_in(model, models)
    return numeric_keys(models)


def test_every_numeric_key_of_the_schema_is_declared_and_no_other() -> None:
    assert schema() - KEYS.keys() == set(), "declare unit and direction in records/keys.py"
    assert KEYS.keys() - schema() == set(), "no model has this key: remove it from records/keys.py"


def test_a_key_without_a_declaration_is_found() -> None:
    class Inner(FigureModel):
        lost_per_s: float | None = None
        name: str = ""
        flag: bool = False

    class Outer(FigureModel):
        rows: list[Inner]

    assert numeric_keys(models_in(Outer, [])) - KEYS.keys() == {"lost_per_s"}


@pytest.mark.parametrize("key", sorted(KEYS))
def test_a_declared_unit_is_the_one_in_the_key(key: str) -> None:
    end = next((end for end in _ENDS if key.endswith(end)), None)
    if end is not None:
        assert KEYS[key].unit == _ENDS[end]


def test_rates_and_times_of_a_program_have_a_direction() -> None:
    assert better("ops_per_s") == "higher"
    assert not KEYS["requests_per_s"].compared, "the speed of the simulator itself"
    rates = {key for key in KEYS if KEYS[key].unit in ("B/s", "1/s") and KEYS[key].compared}
    loads = {"offered_bytes_per_s", "background_bytes_per_s", "traffic_bytes_per_s"}
    assert {key for key in rates if better(key) != "higher"} == loads
    assert {better(key) for key in KEYS if key.endswith(("_latency_ns", "_J"))} == {"lower"}
    assert {better(key) for key in KEYS if key.endswith("_time_s") and KEYS[key].compared} == {
        "lower",
        None,
    }
    undirected = {key for key in KEYS if key.endswith("_time_s") and better(key) is None}
    assert undirected == {"common_time_s", "run_time_s", "traced_time_s"}


def test_keys_of_profiles_have_the_direction_of_their_unit() -> None:
    sheets = [load_profile(name) for name in profile_names()]
    hosts = [load_host(name) for name in host_names()]
    keys = {key for sheet in [*sheets, *hosts] for key in sheet.figures}
    assert len(keys) > 100
    undirected = {key for key in keys if better(key) is None}
    units = {unit_of(key) for key in undirected}
    assert units == {"B", "count", "ns", "V", "cycles"}
    assert {key for key in undirected if unit_of(key) in ("ns", "cycles")} == {
        "clock_ns",
        "tREFI_ns",
        "tREFI_cycles",
    }
