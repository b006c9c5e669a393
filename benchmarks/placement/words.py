"""Builds an index of made-up records and looks them up at random."""

import random
import sys
from typing import TypedDict


class Record(TypedDict):
    """Links are numbers of other records."""

    key: int
    name: str
    links: list[int]


count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
draw = random.Random(1)
records: list[Record] = [
    {"key": n, "name": f"name {n}", "links": [n * 7 % count, n * 13 % count]} for n in range(count)
]
index = {record["name"]: record for record in records}
total = 0
for _ in range(2 * count):
    record = index[f"name {draw.randrange(count)}"]
    total += records[record["links"][0]]["key"] + records[record["links"][1]]["key"]
print(total)
