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
    wanted: AdviceRequest, asked: AdviceInputs, found: list[FarResult], loads: list[Loaded]
) -> tuple[list[FarResult], list[str]]:
    """Advice with sites on both memories, where that is possible; and what limits it."""
    made: list[FarResult] = []
    notes: list[str] = []
    for name, each, loaded in zip(wanted.far, found, loads, strict=True):
        nodes = nodes_of(wanted.near, name)
        better, said = each, []
        if loaded.why_not:
            said = [f"slowdowns are at idle latency, and each site is whole: {loaded.why_not}"]
        elif wanted.whole_sites or loaded.load is None or nodes is None:
            pass
        elif isinstance(nodes, str):
            said = [f"each site is placed as a whole: {nodes}"]
        else:
            better, said = _with_fractions(asked, each, loaded.load, nodes)
        if each.advice.all_far_load is not None and loaded.load is not None:
            notes += load_warnings(loaded.load.far, loaded.load.all_far())
        made.append(better)
        notes += said
    return made, list(dict.fromkeys(notes))


def _with_fractions(
    asked: AdviceInputs, found: FarResult, load: OwnLoad, nodes: Nodes
) -> tuple[FarResult, list[str]]:
    fractions = find_fractions(asked, found, load)
    if fractions is None:
        return found, []
    sides = load.near, load.far
    states = fractions.best["near"], fractions.best["far"]
    loads = loaded_tier(sides[0], states[0]), loaded_tier(sides[1], states[1])
    better = with_fractions(asked, found, fractions, nodes, loads, load)
    notes: list[str] = []
    for memory, state in zip(sides, states, strict=True):
        if better.placing.tier_lines() and state["utilization"] >= MUCH_TRAFFIC:
            notes += load_warnings(memory, state)
    return better, notes
