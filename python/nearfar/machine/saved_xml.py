"""hwloc's XML of a machine without the names that identify it.

Only what is listed here is kept: hwloc adds host name, board serial numbers, control groups and
addresses of network devices to the same attributes as the processor's model.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

_HEADER = '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n'

#: Elements; ``object`` only for the types below, and ``info`` only for the names below.
_ELEMENTS = {
    "topology",
    "object",
    "info",
    "page_type",
    "distances2",
    "indexes",
    "u64values",
    "memattr",
    "memattr_value",
}
_TYPES = re.compile(r"Machine|Package|Die|Group|NUMANode|Core|PU|MemCache|L\d[di]?Cache")
_INFOS = {
    "Architecture",
    "CPUFamilyNumber",
    "CPUModel",
    "CPUModelNumber",
    "CPUStepping",
    "CPUVendor",
    "DAXType",
    "Inclusive",
    "MemoryTier",
    "OSName",
    "OSRelease",
}


def _reduce_info(element: ElementTree.Element) -> None:
    """A kernel's version without its local part, which may be the name of an organization."""
    if element.get("name") == "OSRelease":
        version = re.match(r"[\d.]*\d", element.get("value", ""))
        element.set("value", version[0] if version else "")


def _is_kept(element: ElementTree.Element) -> bool:
    if element.tag == "object":
        return _TYPES.fullmatch(element.get("type", "")) is not None
    if element.tag == "info":
        return element.get("name") in _INFOS
    return element.tag in _ELEMENTS


def _reduce(element: ElementTree.Element) -> None:
    if element.tag == "info":
        _reduce_info(element)
    elif element.tag == "object":
        element.attrib.pop("name", None)
    for child in list(element):
        if _is_kept(child):
            _reduce(child)
        else:
            element.remove(child)


def anonymized(xml: str) -> str:
    """The same machine, without names."""
    topology = ElementTree.fromstring(xml)
    _reduce(topology)
    return _HEADER + ElementTree.tostring(topology, encoding="unicode") + "\n"
