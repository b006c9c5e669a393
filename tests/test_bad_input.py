"""Wrong command lines of all verbs: one message, exit code 2 or 3, nothing left behind.

The table of wrong values is ``bad_input``.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import tempfile
from pathlib import Path

import pytest

import bad_input
import running
from bad_input import Case
from conftest import RunNearfar, without_output_settings

_VERBS = bad_input.verbs()
_WITH_JSON = [verb for verb, found in _VERBS.items() if any(p.name == "json" for p in found.params)]
#: Each case is run with one of these, in turn: what takes the place of which descriptor.
_ODD_STREAMS: tuple[running.Streams, ...] = (
    {1: None},
    {2: None},
    {0: None},
    {1: "/dev/full"},
    {2: "/dev/full"},
    {0: None, 1: None, 2: None},
)
#: A busy machine takes long; a verb that measures in earnest takes longer.
_SECONDS = 120


def make_files(folder: Path) -> None:
    """Paths that the wrong values of the table name."""
    (folder / "folder").mkdir()
    (folder / "tmp").mkdir()
    (folder / "taken").touch()
    contents = {
        "binary": bytes(range(256)) * 4,
        "empty": b"",
        "zeros": bytes(1 << 12),
        "other.json": b'{"schema_version": 1, "kind": "something else", "rows": []}\n',
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
        (folder / name).chmod(0o755)
    os.mkfifo(folder / "pipe", 0o755)


def _refusals(case: Case) -> tuple[int, ...]:
    """Exit codes of a refusal; ``run`` returns those of a shell if a program cannot start."""
    return (2, 3, 126, 127) if case.arguments[0] == "run" else (2, 3)


def complaints(case: Case, folder: Path, streams: running.Streams) -> list[str]:
    """Defects in the refusal of a wrong command line."""
    environment = {
        **without_output_settings(),
        "COLUMNS": "80",
        "TERM": "dumb",
        "TMPDIR": str(folder / "tmp"),
    }
    before = sorted(folder.rglob("*"))
    try:
        code, output, error = running.run(
            case.arguments, environment, folder, _SECONDS, streams=streams
        )
    except subprocess.TimeoutExpired:
        return ["it did not end"]
    found = []
    if code not in _refusals(case):
        found.append(f"exit code {code}")
    if case.json and 1 not in streams and code in (2, 3):
        found += [] if _is_refusal(output, code) else [f"not one document of a refusal: {output}"]
    elif output:
        found.append("standard output is not empty")
    if 2 not in streams and (error.count("next: ") != 1 or not error.startswith("nearfar")):
        found.append("not one message with its next step")
    if "a bug in nearfar" in error or "Traceback" in error:
        found.append("an internal error is shown")
    left = [
        str(path.relative_to(folder)) for path in sorted(folder.rglob("*")) if path not in before
    ]
    if left:
        found.append(f"left behind: {left}")
    return [f"{what}: {error[:300]}" for what in found]


def _is_refusal(output: str, code: int) -> bool:
    try:
        document = json.loads(output)
    except ValueError:
        return False
    return list(document) == ["error", "next", "exit_code"] and document["exit_code"] == code


def check(case: Case, streams: running.Streams) -> list[str]:
    """The complaints about one case, each with its command line, in a folder of its own."""
    with tempfile.TemporaryDirectory() as made:
        make_files(Path(made))
        odd = f" with {streams}" if streams else ""
        return [f"nearfar {case}{odd}: {what}" for what in complaints(case, Path(made), streams)]


#: Of the cases of each verb, one in so many is part of `make test`.
_EVERY = 6


def _all_cases() -> list[Case]:
    return [case for verb, found in _VERBS.items() for case in bad_input.cases(verb, found)]


def _sampled_cases() -> list[Case]:
    """At least one case of each verb that has any."""
    found = (bad_input.cases(verb, command) for verb, command in _VERBS.items())
    return [case for cases in found for case in list(cases)[::_EVERY]]


def _sample(verb: str) -> list[tuple[Case, running.Streams]]:
    """Cases of a verb, each with another of the odd streams, most with ``--json -``."""
    turns = itertools.cycle(_ODD_STREAMS)
    with_json = itertools.cycle((False, False, True, True, True))
    chosen = [(case, next(turns), next(with_json)) for case in _sampled_cases()]
    return [
        (case.as_json() if as_json and _has_json(case) else case, streams)
        for case, streams, as_json in chosen
        if case.verb == verb
    ]


def _has_json(case: Case) -> bool:
    flags = [parameter.name for parameter in _VERBS[case.verb].params]
    return "json" in flags and "--json" not in case.arguments


def test_the_table_reaches_every_verb_and_has_at_least_200_cases_in_the_sample() -> None:
    sample = _sampled_cases()
    assert len(sample) >= 200
    assert {case.verb for case in sample} == set(_VERBS)


def test_every_numeric_flag_declares_its_range() -> None:
    unbounded = [
        f"{verb} {parameter.opts}"
        for verb, command in _VERBS.items()
        for parameter in command.params
        if bad_input.is_number(parameter) and None in (parameter.min, parameter.max)
    ]
    assert unbounded == []


@pytest.mark.parametrize("verb", _VERBS)
def test_wrong_values_are_refused_with_one_message_whatever_the_streams(verb: str) -> None:
    found: list[str] = []
    for case, streams in _sample(verb):
        found += check(case, streams)
    assert found == []


@pytest.mark.parametrize("verb", _WITH_JSON)
def test_a_refusal_is_a_document_where_one_was_asked_for(verb: str) -> None:
    case = Case(verb, (*verb.split(), "--no-such-flag")).as_json()
    assert check(case, {}) == []


@pytest.mark.parametrize("flag", ["--json", "--csv", "--out", "--mapping"])
def test_a_flag_is_not_the_value_of_the_flag_before_it(
    run_nearfar: RunNearfar, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flag: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run_nearfar("sim", "--pattern", "random", "--far", "ddr4-3200", flag, "--quiet")
    done.assert_refused(2, "--quiet is a flag, not a value")
    assert list(tmp_path.iterdir()) == []


def test_json_that_a_program_is_given_is_not_the_verbs(run_nearfar: RunNearfar) -> None:
    for before in ((), ("--",)):
        done = run_nearfar("advise", *before, "no-such-program", "--json", "-")
        done.assert_refused(2, "no program no-such-program")


@pytest.mark.long
@pytest.mark.parametrize("verb", _VERBS)
def test_all_wrong_values_are_refused_with_one_message(verb: str) -> None:
    found: list[str] = []
    for case in bad_input.cases(verb, _VERBS[verb]):
        found += check(case, {})
    assert found == []
