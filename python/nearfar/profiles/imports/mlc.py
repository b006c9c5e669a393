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
from nearfar.profiles.loaded_curves import Loaded
from nearfar.records.profile import Figure

TOOL = "Intel Memory Latency Checker"
_BYTES_PER_S = 1e6
_SECTIONS = {
    "latencies": r"Measuring idle latencies",
    "bandwidths": r"Measuring Memory Bandwidths between nodes",
    "peaks": r"Measuring Peak (?:Injection )?Memory Bandwidths",
    "loaded": r"Measuring Loaded Latencies",
    "others": r"Measuring ",
}
#: Fractions of reads of mlc's mixes; of its stream-triad, two reads and a write.
_MIXES = {"ALL Reads": 1.0, "3:1 Reads-Writes": 0.75, "2:1 Reads-Writes": 2 / 3}
_MIXES |= {"1:1 Reads-Writes": 0.5}
_MATRICES = ("latencies", "bandwidths")
_WHOLE = "of the whole machine"


def recognizes(text: str) -> bool:
    """Whether it has one of mlc's sections."""
    return any(re.search(pattern, text) for name, pattern in _SECTIONS.items() if name != "others")


def read(text: str, path: Path, nodes: tuple[int, int]) -> Found:
    """Read the sections that are there. Raises BadInputError if a node, or all, are absent."""
    version = re.search(r"Memory Latency Checker - v(\S+)", text)
    tool = f"{TOOL} {version[1]}" if version else TOOL
    parts = _parts(text)
    figures: dict[str, Figure] = {}
    alone = not any(_has_several_nodes(parts[name]) for name in _MATRICES if name in parts)
    if "loaded" in parts and alone:
        points = [
            Loaded(float(rate) * _BYTES_PER_S, float(latency))
            for latency, rate in re.findall(
                r"^\s*\d{5}\s+([\d.]+)\s+([\d.]+)\s*$", parts["loaded"], re.MULTILINE
            )
        ]
        figures |= loaded_figures({1.0: points}, _WHOLE) if points else {}
    if "peaks" in parts and alone:
        figures |= _peaks(parts["peaks"])
    if "bandwidths" in parts:
        rate = _cell(parts["bandwidths"], nodes, path) * _BYTES_PER_S
        figures["read_bandwidth_bytes_per_s"] = scalar("B/s", rate, _between(nodes))
    if "latencies" in parts:
        latency = _cell(parts["latencies"], nodes, path)
        figures["read_latency_ns"] = scalar("ns", latency, f"idle, {_between(nodes)}")
    if not figures:
        raise BadInputError(
            f"{path} has no figures of Intel MLC for {_between(nodes)}",
            "give the whole output of mlc, or name other nodes with --nodes",
        )
    return Found(tool, figures)


def _has_several_nodes(part: str) -> bool:
    head = re.search(r"^\s*Numa node((?:\s+\d+)+)\s*$", part, re.MULTILINE)
    return head is not None and len(head[1].split()) > 1


def _between(nodes: tuple[int, int]) -> str:
    return f"node {nodes[0]} to memory of node {nodes[1]}"


def _parts(text: str) -> dict[str, str]:
    """The text of each section, without its heading."""
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
    ends = [*starts[1:], len(text)]
    return {firsts[a]: text[a:b] for a, b in zip(starts, ends, strict=True)}


def _peaks(part: str) -> dict[str, Figure]:
    found = {
        share: float(match[1]) * _BYTES_PER_S
        for mix, share in _MIXES.items()
        if (match := re.search(rf"{re.escape(mix)}\s*:\s*([\d.]+)", part))
    }
    if not found:
        return {}
    points = [[share, rate] for share, rate in sorted(found.items())]
    figures = {"bandwidth_by_read_share_bytes_per_s": curve("B/s", ["read_share"], points, _WHOLE)}
    if 1.0 in found:
        figures["read_bandwidth_bytes_per_s"] = scalar("B/s", found[1.0], _WHOLE)
    return figures


def _cell(part: str, nodes: tuple[int, int], path: Path) -> float:
    """An entry of a matrix, whose rows begin with the number of their node."""
    columns: list[int] = []
    for line in part.splitlines():
        words = line.split()
        if line.strip().startswith("Numa node") and len(words) > 2:
            columns = [int(word) for word in words[2:] if word.isdigit()]
        elif columns and words and words[0] == str(nodes[0]) and nodes[1] in columns:
            at = columns.index(nodes[1]) + 1
            if at < len(words) and re.fullmatch(r"\d+(\.\d+)?", words[at]) and float(words[at]):
                return float(words[at])
    raise BadInputError(
        f"{path} has no figure for {_between(nodes)}", "name nodes that it has with --nodes"
    )
