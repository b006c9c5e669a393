"""Aligned blocks as persistent memory: ``nearfar crash lint --heap``."""

from __future__ import annotations

from pathlib import Path

from compiling import compile_c
from conftest import RunNearfar
from crashing import document, needs_explorer

pytestmark = needs_explorer

TREE = r"""
#include <stdint.h>
#include <stdlib.h>
static void flush(const void *at) {
  __asm__ volatile("mfence\n\tclflush %0\n\tmfence" : : "m"(*(const char *)at) : "memory");
}
int main(void) {
  void *block, *ordinary = malloc(100);
  for (int i = 0; i < 100; ++i) { // a block is not used again, and free() takes those of malloc()
    if (posix_memalign(&block, 64, 128) != 0)
      return 2;
    volatile uint64_t *words = block;
    words[0] = 1;
    flush(block);
    words[8] = 2; // never flushed
    free(block);
  }
  free(ordinary);
  void *large = aligned_alloc(4096, 1 << 20); // does not fit
  free(large);
  return large == NULL || posix_memalign(&block, 3, 8) == 0;
}
"""


def test_blocks_of_posix_memalign_are_judged(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    program = compile_c(tmp_path, "tree", TREE, "-O1")
    done = run_nearfar("crash", "lint", "--heap", "64KiB", "--json", "-", "--", str(program))
    found = document(done)
    assert (done.code, found["errors"], found["heap_bytes"]) == (1, 1, 65536), done
    (finding,) = found["findings"]
    line = 1 + TREE.splitlines().index("    words[8] = 2; // never flushed")
    assert (finding["rule"], finding["times"]) == ("unflushed", 100)
    assert finding["place"].endswith(f"tree.c:{line}")


def test_without_it_there_is_no_pool(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    program = compile_c(tmp_path, "tree", TREE, "-O1")
    run_nearfar("crash", "lint", "--", str(program)).assert_refused(2, "mapped no file")


GROWN = r"""
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
int main(void) {
  uint64_t *words = aligned_alloc(64, 128);
  words[0] = 1;
  if (malloc_usable_size(words) != 128)
    return 2;
  words = realloc(words, 4096); // copied: never flushed
  if (words[0] != 1 || malloc_usable_size(words) != 4096)
    return 3;
  for (int i = 0; i < 4; ++i) // the last ones do not fit
    memset(aligned_alloc(64, 32768), 0, 32768);
  words = realloc(words, 1 << 20);
  return words[0] != 1;
}
"""


def test_blocks_are_resized_and_a_full_heap_is_reported(
    run_nearfar: RunNearfar, tmp_path: Path
) -> None:
    program = compile_c(tmp_path, "grown", GROWN, "-O1")
    done = run_nearfar("crash", "lint", "--heap", "64KiB", "--json", "-", "--", str(program))
    found = document(done)
    assert any("do not fit in --heap" in warning for warning in found["warnings"]), done
    assert not any("ended with" in warning for warning in found["warnings"]), done
    line = 1 + next(n for n, text in enumerate(GROWN.splitlines()) if "copied: never" in text)
    assert any(finding["place"].endswith(f"grown.c:{line}") for finding in found["findings"])


def test_a_heap_of_no_use_is_refused(run_nearfar: RunNearfar, tmp_path: Path) -> None:
    for size in ("100", "200TiB"):
        done = run_nearfar("crash", "lint", "--heap", size, "--", "true")
        done.assert_refused(2, "the heap has 4KiB to 64GiB")
