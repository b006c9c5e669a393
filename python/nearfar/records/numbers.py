"""Every number of a record's sections, with its conditions and provenance.

1. A number is a *quantity* if it has an interval or a provenance, such as a measured latency. A
   float that was not requested (``FigureModel.requested``) is a quantity, too; its origin is shown
   as missing if it has no provenance. An integer without either is never a quantity.
2. Any other number is a *setting*, such as the number of threads.
3. The *conditions* of a quantity are the scalars next to it and in the objects around it that are
   not quantities, such as a kernel's name or an array's size (not ``FigureModel.remarks``). Figures
   of a sweep's cell also have its flags.
4. Of a list of single observations (``ObservationModel``: drops, series of threads) only the length
   is a setting. A list of floats is a series over time, such as the traffic of a simulation: it is
   ignored. A list of texts or integers is a condition; add its key to ``remarks`` if it is a
   result.
5. Each figure is listed once. A record of advice has the figures of the first far memory twice:
   they are listed under the advice itself (``FigureModel.first_repeats_own``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeGuard

from pydantic import BaseModel

from nearfar.records.figures import FigureModel, ObservationModel, Provenance
from nearfar.records.run import Sections
from nearfar.records.sweep import Scalar, SweepCell, SweepResult

_ENVELOPE = frozenset({"intervals", "provenance"})

Conditions = tuple[tuple[str, Scalar], ...]


@dataclass(frozen=True)
class Quantity:
    """One number of a record. ``path`` names its lists without positions: ``latency/curves``."""

    path: str
    key: str
    value: float
    conditions: Conditions
    interval: tuple[float, float] | None
    provenance: Provenance | None
    #: Whether a higher or a lower value is better. False, for example, for a program's traffic.
    is_directed: bool = True


@dataclass(frozen=True)
class SettingNumber:
    """A number that was requested, found or counted, without repeats."""

    path: str
    key: str
    value: float
    conditions: Conditions


def numbers(sections: Sections) -> Iterator[Quantity | SettingNumber]:
    """Yield all numbers of all sections, in the order of the record."""
    for name, _ in Sections.model_fields.items():
        section = getattr(sections, name)
        if isinstance(section, SweepResult):
            for cell in section.cells:
                yield from quantities_of(cell)
        elif section is not None:
            yield from numbers_of(section, name)


def numbers_of(model: BaseModel, path: str) -> Iterator[Quantity | SettingNumber]:
    """Yield all numbers of one result, below a path."""
    return _walk(model, path, ())


def quantities_of(cell: SweepCell) -> Iterator[Quantity]:
    """Yield the figures of a cell. The flags of the cell are one additional condition."""
    flags = " ".join(cell.flags)
    for figure in cell.figures:
        path = "/".join(filter(None, ("sweep", cell.verb, figure.path)))
        conditions = (("flags", flags), *figure.conditions.items())
        yield Quantity(
            path, figure.key, figure.value, conditions, figure.interval, figure.provenance
        )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_quantity(model: BaseModel, key: str) -> bool:
    if not isinstance(model, FigureModel):
        return False
    recorded = key in model.provenance or key in model.intervals
    return recorded or (isinstance(getattr(model, key), float) and key not in model.requested)


def _keys(model: BaseModel) -> Iterator[tuple[str, str]]:
    """Yield names of a model's members and their JSON names, including extra members."""
    yield from ((key, field.alias or key) for key, field in type(model).model_fields.items())
    yield from ((key, key) for key in model.model_extra or ())


def _own(model: BaseModel) -> tuple[list[str], list[tuple[str, Scalar]]]:
    """Return the keys of a model's quantities, and its other scalars with their keys.

    A list of texts or integers is returned as one scalar: its text. A list of floats is skipped: it
    is a series over time, which is a result, not a condition.
    """
    quantities: list[str] = []
    others: list[tuple[str, Scalar]] = []
    remarks = model.remarks if isinstance(model, FigureModel) else frozenset()
    for key, _ in _keys(model):
        value = getattr(model, key)
        if key in _ENVELOPE or key in remarks or value is None:
            continue
        if _is_number(value) and _is_quantity(model, key):
            quantities.append(key)
        elif isinstance(value, Scalar):
            others.append((key, value))
        elif _is_list_of_conditions(value):
            others.append((key, ", ".join(map(str, value))))
    return quantities, others


def _is_list_of_conditions(value: object) -> TypeGuard[list[Scalar]]:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(v, Scalar) and not isinstance(v, float) for v in value)
    )


def _walk(model: BaseModel, path: str, above: Conditions) -> Iterator[Quantity | SettingNumber]:
    keys, others = _own(model)
    repeated = model.first_repeats_own if isinstance(model, FigureModel) else frozenset()
    conditions = tuple({**dict(above), **dict(others)}.items())  # own values override those above
    if isinstance(model, FigureModel):  # other models have no quantities
        yield from (_quantity(model, key, path, conditions) for key in keys)
    if not keys:
        texts = tuple(pair for pair in conditions if not _is_number(pair[1]))
        for key, number in others:
            if _is_number(number):
                yield SettingNumber(path, key, number, texts)  # type: ignore[arg-type]
    for key, alias in _keys(model):
        value = getattr(model, key)
        name = f"{path}/{alias}" if path else alias
        if isinstance(value, BaseModel) and key not in _ENVELOPE:
            yield from _walk(value, name, conditions)
        elif isinstance(value, list) and any(
            isinstance(member, ObservationModel) for member in value
        ):
            yield SettingNumber(path, key, len(value), conditions)
        elif isinstance(value, list):
            for member in value[1:] if key in repeated else value:
                if isinstance(member, BaseModel):
                    yield from _walk(member, name, conditions)


def _quantity(model: FigureModel, key: str, path: str, conditions: Conditions) -> Quantity:
    return Quantity(
        path,
        key,
        getattr(model, key),
        conditions,
        model.interval(key),
        model.provenance.get(key),
        key not in model.undirected,
    )
