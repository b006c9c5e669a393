"""Models of persistent structures: a dict, a sorted set, a list, and steps on each."""

from typing import Any

from hypothesis import strategies as st

#: One operation on structure or model: the name of a method of both, and its arguments.
Operation = tuple[str, tuple[Any, ...]]


class MapModel(dict[Any, Any]):
    """A dict with the methods of a persistent map."""

    def insert(self, key: Any, value: Any) -> bool:
        new = key not in self
        self.setdefault(key, value)
        return new

    def put(self, key: Any, value: Any) -> bool:
        new = key not in self
        self[key] = value
        return new

    def remove(self, key: Any) -> bool:
        return self.pop(key, None) is not None

    def bulk_load(self, pairs: list[tuple[Any, Any]]) -> None:
        self.update(pairs)

    def contents(self) -> Any:
        return sorted(self.items())

    def get_many(self, keys: list[Any]) -> list[Any]:
        return [self.get(key) for key in keys]


class PmdkMapModel(MapModel):
    """The same for map_atomic and map_tx, whose removals return what was there."""

    def remove(self, key: int) -> int | None:  # type: ignore[override]
        value: int | None = self.pop(key, None)
        return value


class RobinHoodModel(PmdkMapModel):
    """The same for map_rp, whose insertions replace."""

    insert = MapModel.put


class SortedModel(set[int]):
    """A set with the methods of a sorted list."""

    def insert(self, key: int) -> bool:
        new = key not in self
        self.add(key)
        return new

    def remove(self, key: int) -> bool:  # type: ignore[override]
        there = key in self
        self.discard(key)
        return there

    def contains(self, key: int) -> bool:
        return key in self

    def bulk_load(self, keys: list[int]) -> None:
        self.update(keys)

    def contents(self) -> Any:
        return sorted(self)


class QueueModel(list[int]):
    """A list with the methods of a queue."""

    def push(self, value: int) -> None:
        self.append(value)

    def pop(self) -> int | None:  # type: ignore[override]
        return super().pop(0) if self else None

    def front(self) -> int | None:
        return self[0] if self else None

    def bulk_load(self, values: list[int]) -> None:
        self.extend(values)

    def contents(self) -> Any:
        return list(self)


def contents(structure: Any) -> Any:
    return sorted(structure.items()) if hasattr(structure, "items") else structure.values()


words = st.integers(0, 40) | st.integers(0, 2**64 - 1)
strings = st.binary(max_size=20) | st.binary(min_size=200, max_size=20000)


def operations(name: str, *arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Operation]:
    return st.tuples(st.just(name), st.tuples(*arguments))


def on_map(thing: st.SearchStrategy[Any]) -> st.SearchStrategy[Operation]:
    return (
        operations("insert", thing, thing)
        | operations("put", thing, thing)
        | operations("remove", thing)
        | operations("get", thing)
        | operations("get_many", st.lists(thing, max_size=50))
        | operations("bulk_load", st.lists(st.tuples(thing, thing), max_size=300))
        | operations("clear")
    )


on_pmdk_map = (
    operations("insert", words, words) | operations("remove", words) | operations("get", words)
)
on_sorted = (
    operations("insert", words)
    | operations("remove", words)
    | operations("contains", words)
    | operations("bulk_load", st.lists(words, max_size=30))
    | operations("clear")
)
on_queue = (
    operations("push", words)
    | operations("pop")
    | operations("front")
    | operations("bulk_load", st.lists(words, max_size=30))
    | operations("clear")
)


#: By the name of the structure in ``_native``: its model, and steps that both can do.
MACHINES = {
    "WordMap": (MapModel, on_map(words)),
    "BytesMap": (MapModel, on_map(strings)),
    "WordList": (SortedModel, on_sorted),
    "WordSkipList": (SortedModel, on_sorted),
    "WordQueue": (QueueModel, on_queue),
    "WordMapAtomic": (PmdkMapModel, on_pmdk_map),
    "WordMapTx": (PmdkMapModel, on_pmdk_map),
    "WordMapRp": (RobinHoodModel, on_pmdk_map),
}
