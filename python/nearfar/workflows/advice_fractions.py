"""Advice with sites on both memories, where that is possible."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nearfar.model.interleave import load_warnings, loaded_tier
from nearfar.place.interleaving import find_fractions, with_fractions
from nearfar.place.own_load import MUCH_TRAFFIC, OwnLoad
from nearfar.workflows.advice_loads import Loaded, nodes_of
from nearfar.workflows.observation import AdviceRequest

if TYPE_CHECKING:
    from nearfar.place.advising import AdviceInputs, FarResult
    from nearfar.place.fractions import Nodes


def add_fractions(
    request: AdviceRequest, inputs: AdviceInputs, found: list[FarResult], loads: list[Loaded]
) -> tuple[list[FarResult], list[str]]:
    """Advice with sites on both memories, where that is possible; and what limits it."""
    made: list[FarResult] = []
    notes: list[str] = []
    for name, each, loaded in zip(request.far, found, loads, strict=True):
        nodes = nodes_of(request.near, name)
        better, limits = each, []
        if loaded.why_not:
            limits = [f"slowdowns are at idle latency, and each site is whole: {loaded.why_not}"]
        elif request.whole_sites or loaded.load is None or nodes is None:
            pass
        elif isinstance(nodes, str):
            limits = [f"each site is placed as a whole: {nodes}"]
        else:
            better, limits = _with_fractions(inputs, each, loaded.load, nodes)
        if each.advice.all_far_load is not None and loaded.load is not None:
            notes += load_warnings(loaded.load.far, loaded.load.all_far())
        made.append(better)
        notes += limits
    return made, list(dict.fromkeys(notes))


def _with_fractions(
    inputs: AdviceInputs, found: FarResult, load: OwnLoad, nodes: Nodes
) -> tuple[FarResult, list[str]]:
    fractions = find_fractions(inputs, found, load)
    if fractions is None:
        return found, []
    sides = load.near, load.far
    states = fractions.best["near"], fractions.best["far"]
    loads = loaded_tier(sides[0], states[0]), loaded_tier(sides[1], states[1])
    better = with_fractions(inputs, found, fractions, nodes, loads, load)
    notes: list[str] = []
    for memory, state in zip(sides, states, strict=True):
        if better.placing.tier_lines() and state["utilization"] >= MUCH_TRAFFIC:
            notes += load_warnings(memory, state)
    return better, notes
