"""Findings as SARIF 2.1.0, which editors and code hosts show at their source lines."""

from __future__ import annotations

from itertools import chain
from pathlib import PurePath
from urllib.parse import quote

from nearfar import __version__
from nearfar.verify.findings import FAILURES, MISSING, Exploration, Finding
from nearfar.verify.lint import RULES, LintFinding, LintResult


def exploration(result: Exploration) -> dict[str, object]:
    """One result for each finding of an exploration."""
    rules = {f"missing-{name}": f"A store {text}" for name, text in MISSING.items()}
    return _document(rules, [_result(finding) for finding in result.findings])


def lint(result: LintResult) -> dict[str, object]:
    """One result for each place that breaks a rule."""
    rules = {name: rule.title for name, rule in RULES.items()}
    return _document(rules, [_lint_result(finding) for finding in result.findings])


def _document(rules: dict[str, str], results: list[dict[str, object]]) -> dict[str, object]:
    described = [{"id": name, "shortDescription": {"text": text}} for name, text in rules.items()]
    driver = {"name": "nearfar crash", "version": __version__, "rules": described}
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
        "locations": [_location(finding.store_caller or finding.store)] if finding.store else [],
        "relatedLocations": [_location(place) for place in finding.store_calls]
        + [_location(line.caller or line.store) for line in finding.lines if line.store],
    }


def _lint_result(finding: LintFinding) -> dict[str, object]:
    frames = [{"location": _location(place)} for place in (finding.place, *finding.calls)]
    stack = {"message": {"text": "when it was first reached"}, "frames": frames}
    return {
        "ruleId": finding.rule,
        "level": RULES[finding.rule].level,
        "message": {"text": finding.sentence()},
        "locations": [_location(finding.place)] if finding.place else [],
        "relatedLocations": [
            _location(place)
            for place in (finding.other, *finding.inlined_into, *chain(*finding.other_calls))
            if place
        ],
        **({"stacks": [stack]} if finding.calls else {}),
    }
