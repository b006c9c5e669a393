from __future__ import annotations

import subprocess
import sys

import pytest

from nearfar import errors
from nearfar._native import NativeError, parse_tier, tier_capacity_bytes
from nearfar.cli.app import main
from nearfar.errors import ExitCode


def test_exit_codes_are_those_of_the_contract() -> None:
    assert [int(code) for code in ExitCode] == [0, 1, 2, 3, 4, 130, 141]
    assert errors.NearfarError("x").exit_code == 1
    assert errors.BadInputError("x").exit_code == 2
    assert errors.MachineError("x").exit_code == 3
    assert errors.NoisyError("x").exit_code == 4


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [
        ("bad_input", 2),
        ("not_found", 2),
        ("exists", 2),
        ("no_permission", 3),
        ("no_space", 3),
        ("unsupported", 3),
        ("failed_check", 3),
        ("os_error", 3),
    ],
)
def test_every_native_code_has_its_exit_code(code: str, exit_code: int) -> None:
    error = errors.from_native(NativeError(code, "what", "next", 0))
    assert (error.exit_code, error.what, error.next_step) == (exit_code, "what", "next")


def test_an_error_of_the_core_arrives_with_its_sentences() -> None:
    with pytest.raises(NativeError) as raised:
        parse_tier("ram")
    error = errors.from_native(raised.value)
    assert isinstance(error, errors.BadInputError)
    assert error.what == "unknown tier 'ram'"
    assert error.next_step.startswith("tiers are dram, numa:N")
    with pytest.raises(NativeError) as raised:
        tier_capacity_bytes("numa:9999")
    assert isinstance(errors.from_native(raised.value), errors.MachineError)


def test_a_flag_with_one_value_is_not_given_twice(capsys: pytest.CaptureFixture[str]) -> None:
    """The first value would have no effect. A flag for several values takes both."""
    named = ["predict", "structure", "--structure", "hash", "--entries", "64"]
    assert main([*named, "--far", "optane-100", "--far=cxl-asic"]) == ExitCode.BAD_INPUT
    message = "nearfar predict structure: --far has one value, and was given 2 times"
    assert message in capsys.readouterr().err
    assert main(["run", "--tier", "far=shm:", "--tier", "far=shm:"]) == ExitCode.BAD_INPUT
    assert "has one value" not in capsys.readouterr().err


def test_missing_libraries_of_the_core_are_reported_with_their_packages() -> None:
    program = (
        "import sys; sys.modules['nearfar._native'] = None\n"
        "from nearfar.cli.app import main; sys.exit(main(['topo']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == ExitCode.MACHINE
    assert done.stdout == ""
    assert done.stderr.startswith("nearfar: the native core cannot be loaded: ")
    assert "apt-get install libhwloc15" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("code", "exit_code"), [(3, 3), (0, 0), (None, 0), ("no such thing", 1)])
def test_the_code_of_a_system_exit_is_that_of_the_tool(
    code: object,
    exit_code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def leaves(*_arguments: object, **_options: object) -> None:
        sys.exit(code)  # type: ignore[arg-type]

    monkeypatch.setattr("nearfar.cli.app._commands", lambda: leaves)
    assert main(["topo"]) == exit_code
    assert ("no such thing" in capsys.readouterr().err) == isinstance(code, str)


@pytest.mark.parametrize(
    ("arguments", "verb"),
    [(["split", "--version"], "split"), (["bench", "stencil", "--rows"], "bench stencil")],
)
def test_a_flag_without_its_value_names_the_verb(
    arguments: list[str], verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == ExitCode.BAD_INPUT
    reported = capsys.readouterr().err
    assert reported.startswith(f"nearfar {verb}: Option '{arguments[-1]}' requires an argument.")
    assert f"next: nearfar {verb} --help" in reported


@pytest.mark.parametrize(
    ("arguments", "what", "next_step"),
    [
        (["advise", "--pid", "abc"], "'--pid': 'abc' is not a whole number", "ps -e"),
        (["place", "--pid", "0", "--plan", "x"], "'--pid': '0' is less than 1", "ps -e"),
        (["bench", "stream", "--runs", "1.5"], "'1.5' is not a whole number", "stream --help"),
        (["sim", "--write-share", "nan"], "'nan' is not a finite number", "sim --help"),
        (["sim", "--pattern", "x"], "'--pattern': 'x' is not one of 'sequential'", "sim --help"),
        (["bench", "stream", "--time", "0s"], "'0s' is not a positive time", "500ms"),
    ],
)
def test_a_wrong_value_is_reported_in_words(
    arguments: list[str], what: str, next_step: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == ExitCode.BAD_INPUT
    error = capsys.readouterr().err
    assert what in error
    assert next_step in error.partition("next: ")[2]
    assert "Input should" not in error
