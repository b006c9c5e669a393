"""A plan's promise: comment lines of the plan file, one for each rule and one for the whole heap.

    # promise 1 heap peak_bytes=1048576 allocated_bytes=2097152 near_bytes=65536 ...
    # promise 1 rule=2 tier=near allocations=12 allocated_bytes=65536 ... at=sort.c:41

libhmalloc ignores comments; ``nearfar run --check`` checks a run against them. Rules count from 1
in the order of the file. Bytes of a promise are requested bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from nearfar.errors import BadInputError
from nearfar.files import read_text_bytes
from nearfar.records.figures import Amount, Count, Share

_HEAD = "# promise 1 "
_NEXT = "make the plan anew with `nearfar advise`"


class _Fields(BaseModel):
    model_config = ConfigDict(extra="forbid")

    def line(self) -> str:
        """The line in a plan, without its subject."""
        fields = self.model_dump(exclude_none=True, exclude={"rule"})
        return " ".join(f"{key}={_text(value)}" for key, value in fields.items())


def _text(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value).replace(" ", "_")


class HeapPromise(_Fields):
    """The run that the plan was made from."""

    allocated_bytes: Count
    peak_bytes: Count
    near_bytes: Count = Field(description="most bytes that the plan keeps near at once")
    near_budget_bytes: Count | None = None
    slowdown: Amount = Field(description="with the plan, against all near")
    slowdown_all_far: Amount
    caches: str | None = Field(
        default=None, description="before memory in the traced run; absent if it was sampled"
    )


class RulePromise(_Fields):
    """The expected allocations and accesses of one rule."""

    rule: Count
    tier: str
    allocations: Count
    allocated_bytes: Count
    peak_bytes: Count
    reads: Count | None = Field(
        None, description="counted lines read from memory; absent if the program was sampled"
    )
    writes: Count | None = None
    stall_share: Share = Field(description="of the time that all far memory costs")
    at: str = ""

    def lines_promised(self) -> int:
        """Lines read and written; 0 if they were not counted."""
        return (self.reads or 0) + (self.writes or 0)


class Promise(BaseModel):
    """The promise of a plan: the heap and all rules."""

    model_config = ConfigDict(extra="forbid")

    heap: HeapPromise
    rules: list[RulePromise] = Field(default_factory=list)

    def lines(self) -> Iterable[str]:
        """The comment lines of a plan."""
        yield f"{_HEAD}heap {self.heap.line()}"
        for rule in self.rules:
            yield f"{_HEAD}rule={rule.rule} {rule.line()}"


def read_promise(plan: Path) -> Promise:
    """Read the promise of a plan file. Raises BadInputError if it is missing or damaged."""
    heap: HeapPromise | None = None
    rules = []
    text = read_text_bytes(plan, _NEXT).decode(errors="replace")
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.startswith(_HEAD):
            continue
        words = line.removeprefix(_HEAD).split()
        pairs = dict(word.partition("=")[::2] for word in words if "=" in word)
        try:
            if words[0] == "heap":
                heap = HeapPromise.model_validate(pairs)
            else:
                rules.append(RulePromise.model_validate(pairs))
        except (ValidationError, IndexError) as error:
            why = error.errors()[0]["msg"] if isinstance(error, ValidationError) else "it is empty"
            raise BadInputError(f"{plan}:{number}: no promise: {why}", _NEXT) from None
    if heap is None:
        raise BadInputError(f"{plan} promises nothing that could be checked", _NEXT)
    return Promise(heap=heap, rules=rules)
