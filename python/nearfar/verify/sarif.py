"""Findings as SARIF 2.1.0, which editors and code hosts show at their source lines."""

from __future__ import annotations

from pathlib import PurePath
from urllib.parse import quote

from nearfar import __version__
from nearfar.verify.findings import FAILURES, MISSING, Exploration, Finding


def document(result: Exploration) -> dict[str, object]:
    """One run with one result for each finding."""
    rules = [
        {"id": f"missing-{name}", "shortDescription": {"text": f"A store {text}"}}
        for name, text in MISSING.items()
    ]
    driver = {"name": "nearfar crash", "version": __version__, "rules": rules}
    results = [_result(finding) for finding in result.findings]
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }


def _location(place: str) -> dict[str, object]:
    file, _, line = place.rpartition(":")
    known = line.isdecimal() and int(line) > 0
    artifact = {"uri": quote(PurePath(file if known else place).as_posix())}
    region = {"region": {"startLine": int(line)}} if known else {}
    return {"physicalLocation": {"artifactLocation": artifact, **region}}


def _result(finding: Finding) -> dict[str, object]:
    why = FAILURES.get(finding.failure, finding.failure)
    cause = f": {finding.sentence()}" if finding.store else ""
    return {
        "ruleId": f"missing-{finding.missing}",
        "level": "error",
        "message": {"text": f"{why}{cause} ({finding.what})"},
        "locations": [_location(finding.store)] if finding.store else [],
        "relatedLocations": [_location(line.store) for line in finding.lines if line.store],
    }
