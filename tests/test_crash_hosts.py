"""Two hosts on one pool: ``nearfar crash run --hosts 2``."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from compiling import compile_c
from conftest import Outcome, RunNearfar
from crashing import INCLUDE, compiled_for, document, needs_libpmem

pytestmark = needs_libpmem

CHECKS = r"""
#include <nearfar/crash_checker.h>
#include <stdint.h>
#include <stdio.h>
int pass(const struct nearfar_crash_image *image, char *why, size_t bytes) {
  return image->dead_host < -1 || image->dead_host > 1;
}
int ordered(const struct nearfar_crash_image *image, char *why, size_t bytes) {
  const uint64_t *words = image->memory;
  snprintf(why, bytes, "y without x, dead host %d", image->dead_host);
  return words[8] && !words[0];
}
"""

# Images of each crash: host 0 dies, host 1 dies, power fails and the flush fails, and succeeds.
#
# A = host 0, B = host 1; x, y, z lie in three lines, all 0 at first. An image is what the survivor
# sees, or what is there after the power has failed. Images at the end of the program are counted
# apart from those before it, for there a checker may demand more.
# - A store of a host that dies may be lost (a line keeps a prefix of its stores) until the host
#   itself has flushed and fenced it, or the other host has read or written its line.
# - A store of a host that survives is there at once, so each of them makes a new state.
#
# independent  A: x=1; B: y=1
#   host 0 dies   before y=1: x 0 or 1, y=0; at the end: x 0 or 1, y=1              2 + 2 = 4
#   host 1 dies   before x=1: 0,0; at the end: x=1, y 0 or 1                        1 + 2 = 3
#   flush fails   at the end: x 0 or 1, y 0 or 1 (before it: the same, or fewer)    4
#   succeeds      0,0; 1,0; at the end 1,1                                          2 + 1 = 3
# flushed  A: x=1, flush, fence; B: y=1
#   host 0 dies   before the fence: x 0 or 1, y=0; at the end: 1,1                  2 + 1 = 3
#   host 1 dies   0,0; at the end: x=1, y 0 or 1                                    1 + 2 = 3
#   flush fails   before the fence: x 0 or 1, y=0; at the end: x=1, y 0 or 1        2 + 2 = 4
#   succeeds      0,0; 1,0; at the end 1,1                                          2 + 1 = 3
# foreign_flush  A: x=1; B: flush x, fence, y=1: as independent, B's caches do not hold x
# load  A: x=1; B: y=x
#   host 0 dies   before the load: x 0 or 1, y=0; then x=1; at the end: 1,1         2 + 1 = 3
#   host 1 dies   0,0; at the end: x=1, y 0 or 1                                    1 + 2 = 3
#   flush fails   before the load: x 0 or 1, y=0; at the end: x=1, y 0 or 1         2 + 2 = 4
#   succeeds      0,0; 1,0; at the end 1,1                                          2 + 1 = 3
# overwrite  A: x=1; B: x=2
#   host 0 dies   before x=2: 0 or 1; at the end: 2                                 2 + 1 = 3
#   host 1 dies   0; at the end: 1 or 2, never 0                                    1 + 2 = 3
#   flush fails   before x=2: 0 or 1; at the end: 1 or 2                            2 + 2 = 4
#   succeeds      0; 1; at the end 2                                                2 + 1 = 3
# one_line  A: x[0]=1, x[1]=2; B: y=1. x is 0,0 or 1,0 or 1,2: never 0,2
#   host 0 dies   before y=1: three x; at the end: three x                          3 + 3 = 6
#   host 1 dies   0,0; 1,0; at the end: 1,2, y 0 or 1                               2 + 2 = 4
#   flush fails   at the end: three x, y 0 or 1                                     6
#   succeeds      0,0,0; 1,0,0; 1,2,0; at the end 1,2,1                             3 + 1 = 4
# false_sharing  A: x[0]=1; B: x[1]=2, which takes the line from A; A: y=1
#   host 0 dies   before x[1]=2: x[0] 0 or 1; at the end: 1,2, y 0 or 1             2 + 2 = 4
#   host 1 dies   0,0,0; before y=1: 1, x[1] 0 or 2, 0; at the end the same, y=1    1 + 2 + 2 = 5
#   flush fails   before x[1]=2: x[0] 0 or 1; at the end: 1, x[1] 0 or 2, y 0 or 1  2 + 4 = 6
#   succeeds      0,0,0; 1,0,0; 1,2,0; at the end 1,2,1                             3 + 1 = 4
# message  A: x=1, flush, fence, y=1; B: z=y
#   host 0 dies   before the fence: 0,0,0 and 1,0,0; before the load: also 1,1,0;
#                 at the end: 1,1,1                                                 3 + 1 = 4
#   host 1 dies   0,0,0; 1,0,0; at the end: 1,1, z 0 or 1                           2 + 2 = 4
#   flush fails   before the fence: 0,0,0 and 1,0,0; before the load: also 1,1,0;
#                 at the end: 1,1, z 0 or 1                                         3 + 2 = 5
#   succeeds      0,0,0; 1,0,0; 1,1,0; at the end 1,1,1                             3 + 1 = 4
LITMUS = {
    "independent": (4, 3, 4, 3),
    "flushed": (3, 3, 4, 3),
    "foreign_flush": (4, 3, 4, 3),
    "load": (3, 3, 4, 3),
    "overwrite": (3, 3, 4, 3),
    "one_line": (6, 4, 6, 4),
    "false_sharing": (4, 5, 6, 4),
    "message": (4, 4, 5, 4),
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hosts")
    program = compiled_for(
        "instrumented", folder, "two_hosts", INCLUDE, "-include", "nearfar/crash_intrinsics.h"
    )
    compile_c(folder, "checks.so", CHECKS, INCLUDE, "-shared", "-fPIC")
    return program


def explored(
    run: RunNearfar, program: Path, litmus: str, folder: Path, *flags: str, check: str = "pass"
) -> Outcome:
    checker = f"{program.with_name('checks.so')}:{check}"
    run_flags = {"--recorder": "instrumented", "--budget": "0", "--json": "-", "--checker": checker}
    run_flags |= dict(zip(flags[::2], flags[1::2], strict=True))
    command = (str(program), litmus, str(folder / "pool"))
    return run("crash", "run", *chain.from_iterable(run_flags.items()), "--", *command)


@pytest.mark.parametrize("litmus", LITMUS)
def test_a_litmus_program_leaves_the_images_that_were_derived_by_hand(
    litmus: str, built: Path, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    done = explored(run_nearfar, built, litmus, tmp_path, "--hosts", "2")
    assert done.code == 0, done
    found = document(done)
    counts = {one["caches_lost"]: one["states"] for one in found["crashes"]}
    assert counts == dict(zip(("host_0", "host_1", "all", "none"), LITMUS[litmus], strict=True))
    assert found["states"] == sum(LITMUS[litmus])
    assert found["states_left"] == 0


def findings(done: Outcome) -> dict[str, dict[str, Any]]:
    return {one["caches_lost"]: one for one in document(done)["findings"]}


def test_a_line_that_only_the_other_host_flushes_is_lost_when_its_host_dies(
    built: Path, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    images = tmp_path / "images"
    flags = ("--hosts", "2", "--images", str(images))
    done = explored(run_nearfar, built, "foreign_flush", tmp_path, *flags, check="ordered")
    assert done.code == 1, done
    found = findings(done)
    assert set(found) == {"host_0", "all"}  # B sees A's store while A lives
    dead = found["host_0"]
    assert dead["what"] == "y without x, dead host 0"
    line = (built.with_name("two_hosts.c").read_text().split("\n")).index(
        "static void foreign_flush(void) {"
    ) + 2
    assert dead["store"].endswith(f"two_hosts.c:{line}")
    assert dead["missing"] == "flush"
    again = run_nearfar("crash", "replay", dead["image"])
    assert again.code == 1, again
    assert "y without x, dead host 0" in again.stdout
    assert (
        json.loads(Path(dead["image"]).with_suffix(".json").read_text())["caches_lost"] == "host_0"
    )


def test_what_the_other_host_has_read_is_never_lost(
    built: Path, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    done = explored(run_nearfar, built, "load", tmp_path, "--hosts", "2", check="ordered")
    assert done.code == 0, done


def test_a_small_budget_is_shared_by_the_crashes(
    built: Path, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    done = explored(run_nearfar, built, "one_line", tmp_path, "--hosts", "2", "--budget", "8")
    found = document(done)
    assert [one["states"] for one in found["crashes"]] == [2, 2, 2, 2]
    assert done.code == 3, done
    assert found["verdict"] == "inconclusive"


def test_without_the_flag_one_host_has_made_all_stores(
    built: Path, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    done = explored(run_nearfar, built, "load", tmp_path)
    assert document(done)["states"] == 4  # x and y 0 or 1
    assert "crashes" not in document(done)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--recorder", "preload"), "requires the reads of the program"),
        (("--platform", "eadr"), "already explores crashes in which caches survive"),
        ((), "no store, load or flush was made on a second host"),
    ],
)
def test_what_two_hosts_require_is_said(
    flags: tuple[str, ...], message: str, built: Path, run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    done = explored(run_nearfar, built, "alone", tmp_path, "--hosts", "2", *flags)
    assert done.code == 2, done
    assert message in done.stderr
