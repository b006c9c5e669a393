"""Every number of a record's sections, with its conditions and provenance.

1. A number is a *quantity* if it has an interval or a provenance, such as a measured latency. A
   float that was not requested (``FigureModel.requested``) is a quantity, too; its origin is shown
   as missing if it has no provenance. An integer without either is never a quantity.
2. Any other number is a *setting*, such as the number of threads.
3. The *conditions* of a quantity are the scalars next to it and in the objects around it that are
   not quantities, such as a kernel's name or an array's size (not ``FigureModel.remarks``). Figures
   of a sweep's cell also have its flags.
4. Of a list of single observations (``ObservationModel``: drops, series of threads) only the length
   is a setting. A series of values over time, such as live bytes, is neither.
5. Each figure is listed once: those of the first far memory of advice, which a record has twice,
   under the advice itself (``FigureModel.first_is_own``).
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
    #: Whether a higher or a lower value can be better: not of the traffic of a program.
    is_directed: bool = True


@dataclass(frozen=True)
class Setting:
    """A number that was requested, found or counted, without repeats."""

    path: str
    key: str
    value: float
    conditions: Conditions


def numbers(sections: Sections) -> Iterator[Quantity | Setting]:
    """Yield all numbers of all sections, in the order of the record."""
    for name, _ in Sections.model_fields.items():
        section = getattr(sections, name)
        if isinstance(section, SweepResult):
            for cell in section.cells:
                yield from quantities_of(cell)
        elif section is not None:
            yield from numbers_of(section, name)


def numbers_of(model: BaseModel, path: str) -> Iterator[Quantity | Setting]:
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

    A list of scalars is returned as one scalar: its text. A list of fractions is a series over
    time, which is a result, not a condition.
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


def _walk(model: BaseModel, path: str, above: Conditions) -> Iterator[Quantity | Setting]:
    keys, others = _own(model)
    repeated = model.first_is_own if isinstance(model, FigureModel) else frozenset()
    conditions = tuple({**dict(above), **dict(others)}.items())  # own values override those above
    for key in keys:
        shaped = model if isinstance(model, FigureModel) else FigureModel()
        yield Quantity(
            path,
            key,
            getattr(model, key),
            conditions,
            shaped.interval(key),
            shaped.provenance.get(key),
            key not in shaped.undirected,
        )
    if not keys:
        texts = tuple(pair for pair in conditions if not _is_number(pair[1]))
        yield from (Setting(path, k, v, texts) for k, v in others if _is_number(v))  # type: ignore[arg-type]
    for key, alias in _keys(model):
        value = getattr(model, key)
        name = f"{path}/{alias}" if path else alias
        if isinstance(value, BaseModel) and key not in _ENVELOPE:
            yield from _walk(value, name, conditions)
        elif isinstance(value, list) and any(
            isinstance(member, ObservationModel) for member in value
        ):
            yield Setting(path, key, len(value), conditions)
        elif isinstance(value, list):
            for member in value[1:] if key in repeated else value:
                if isinstance(member, BaseModel):
                    yield from _walk(member, name, conditions)
