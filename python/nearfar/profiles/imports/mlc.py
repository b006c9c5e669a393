"""Output of the Intel Memory Latency Checker (mlc 3.x), all of its sections or some.

Read are the matrices of idle latencies (ns) and of bandwidths between nodes (10^6 bytes/s), the
peak bandwidths by mix of reads and writes, and latencies under load (injection delay, ns, 10^6
bytes/s). The last two are those of the whole machine: they are left out if it has several nodes.
"""

from __future__ import annotations

import re
from pathlib import Path

from nearfar.errors import BadInputError
from nearfar.profiles.imports.found import Found, curve, loaded_figures, scalar
from nearfar.profiles.imports.numbers import LATENCY, RATE
from nearfar.profiles.loaded_curves import Loaded
from nearfar.records.profile import Figure

TOOL = "Intel Memory Latency Checker"
_SECTIONS = {
    "latencies": r"Measuring idle latencies",
    "bandwidths": r"Measuring Memory Bandwidths between nodes",
    "peaks": r"Measuring Peak (?:Injection )?Memory Bandwidths",
    "loaded": r"Measuring Loaded Latencies",
    "others": r"Measuring ",
}
#: Fractions of reads of mlc's mixes.
_MIXES = {"ALL Reads": 1.0, "3:1 Reads-Writes": 0.75, "2:1 Reads-Writes": 2 / 3}
_MIXES |= {"1:1 Reads-Writes": 0.5}
_MATRICES = ("latencies", "bandwidths")
#: Sections whose figures are those of all nodes together.
_OF_THE_MACHINE = {
    "peaks": "peak bandwidths by mix, which mlc prints for all nodes together",
    "loaded": "latencies under load, which mlc prints for all nodes together",
}
_WHOLE = "of the whole machine"
#: Pairs of nodes that a message names.
_MAX_PAIRS = 8
#: Text that mlc prints for nodes without CPUs or memory.
_NOT_MEASURED = ("-", "0", "0.0")
#: A row of latencies under load: the injection delay in five digits, latency and bandwidth.
_ROW = re.compile(r"^[ \t]*[0-9]{5}[ \t]+(\S+)[ \t]+(\S+)[ \t]*$", re.MULTILINE)


def recognizes(text: str) -> bool:
    """Whether it has one of mlc's sections."""
    return any(re.search(pattern, text) for name, pattern in _SECTIONS.items() if name != "others")


def read(text: str, path: Path, nodes: tuple[int, int] | None) -> Found:
    """Read the sections that are there. ``nodes`` may be None if there is only one pair.

    Raises BadInputError if a node, or all, are absent.
    """
    version = re.search(r"Memory Latency Checker - v(\S+)", text)
    tool = f"{TOOL} {version[1]}" if version else TOOL
    parts = _parts(text, path)
    nodes = nodes or _only_pair(parts, path)
    figures: dict[str, Figure] = {}
    alone = not any(_has_several_nodes(parts[name]) for name in _MATRICES if name in parts)
    if "loaded" in parts and alone:
        points = [
            Loaded(RATE.read(rate, f"{path}, under load"), LATENCY.read(latency, f"{path}, loaded"))
            for latency, rate in _ROW.findall(parts["loaded"])
        ]
        figures |= loaded_figures({1.0: points}, _WHOLE) if points else {}
    if "peaks" in parts and alone:
        figures |= _peaks(parts["peaks"], path)
    if "bandwidths" in parts:
        rate = RATE.read(_cell(parts["bandwidths"], nodes, path), f"{path}, {_between(nodes)}")
        figures["read_bandwidth_bytes_per_s"] = scalar("B/s", rate, _between(nodes))
    if "latencies" in parts:
        latency = LATENCY.read(_cell(parts["latencies"], nodes, path), f"{path}, {_between(nodes)}")
        figures["read_latency_ns"] = scalar("ns", latency, f"idle, {_between(nodes)}")
    if not figures:
        raise BadInputError(
            f"{path} has no figures of Intel MLC for {_between(nodes)}",
            "give the whole output of mlc, or name other nodes with --nodes",
        )
    left_out = [] if alone else [name for name in _OF_THE_MACHINE if name in parts]
    return Found(tool, figures, [_OF_THE_MACHINE[name] for name in left_out])


def _only_pair(parts: dict[str, str], path: Path) -> tuple[int, int]:
    """The nodes of CPUs and memory. Raises BadInputError if the matrices have several pairs."""
    pairs = {
        (int(cpus), int(memory))
        for name in _MATRICES
        for cpus, row in _matrix(parts.get(name, "")).items()
        for memory, word in row.items()
        if word not in _NOT_MEASURED
    }
    if len(pairs) > 1:
        named = ", ".join(f"{cpus}:{memory}" for cpus, memory in sorted(pairs)[:_MAX_PAIRS])
        more = f" and {len(pairs) - _MAX_PAIRS} more" if len(pairs) > _MAX_PAIRS else ""
        raise BadInputError(
            f"{path} has figures of several nodes, as CPUs:memory {named}{more}",
            "choose one: --nodes 0:1 is what CPUs of node 0 measure of the memory of node 1",
        )
    return pairs.pop() if pairs else (0, 0)


def _has_several_nodes(part: str) -> bool:
    head = re.search(r"^\s*Numa node((?:\s+\d+)+)\s*$", part, re.MULTILINE)
    return head is not None and len(head[1].split()) > 1


def _between(nodes: tuple[int, int]) -> str:
    return f"node {nodes[0]} to memory of node {nodes[1]}"


def _parts(text: str, path: Path) -> dict[str, str]:
    """The text of each section. Raises BadInputError for a section that is there twice."""
    heads = sorted(
        (match.start(), name)
        for name, pattern in _SECTIONS.items()
        for match in re.finditer(pattern, text)
    )
    firsts: dict[int, str] = {}
    for start, name in heads:
        if firsts.get(start, "others") == "others":
            firsts[start] = name
    starts = sorted(firsts)
    names = [firsts[start] for start in starts if firsts[start] != "others"]
    if len(names) > len(set(names)):
        raise BadInputError(f"{path} has several outputs of mlc", "give the output of one run")
    ends = [*starts[1:], len(text)]
    return {firsts[a]: text[a:b] for a, b in zip(starts, ends, strict=True)}


def _peaks(part: str, path: Path) -> dict[str, Figure]:
    found = {
        share: RATE.read(match[1], f"{path}, {mix}")
        for mix, share in _MIXES.items()
        if (match := re.search(rf"{re.escape(mix)}[ \t]*:[ \t]*(\S+)", part))
    }
    if not found:
        return {}
    points = [[share, rate] for share, rate in sorted(found.items())]
    figures = {"bandwidth_by_read_share_bytes_per_s": curve("B/s", ["read_share"], points, _WHOLE)}
    if 1.0 in found:
        figures["read_bandwidth_bytes_per_s"] = scalar("B/s", found[1.0], _WHOLE)
    return figures


def _cell(part: str, nodes: tuple[int, int], path: Path) -> str:
    """An entry of a matrix."""
    rows = _matrix(part)
    if not rows:
        raise BadInputError(
            f"{path}: a matrix of nodes has no rows: it may be cut", "give the whole output of mlc"
        )
    source, memory = (str(node) for node in nodes)
    word = rows.get(source, {}).get(memory, "-")
    if word in _NOT_MEASURED:
        raise BadInputError(
            f"{path} has no figure for {_between(nodes)}", "name nodes that it has with --nodes"
        )
    return word


def _matrix(part: str) -> dict[str, dict[str, str]]:
    """Entries by the node of the CPU, with which a row begins, and the node of the memory."""
    columns: list[str] = []
    rows: dict[str, dict[str, str]] = {}
    for line in part.splitlines():
        words = line.split()
        if words[:2] == ["Numa", "node"] and len(words) > 2:
            columns = words[2:]
        elif columns and words and words[0].isdigit():
            rows[words[0]] = dict(zip(columns, words[1:], strict=False))
    return rows
