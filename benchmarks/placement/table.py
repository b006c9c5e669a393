"""Fills a hash table of ENTRIES records and looks keys up in random order, ROUNDS times."""

import random
import sys

entries, rounds = int(sys.argv[1]), int(sys.argv[2])
table = {f"key-{i}": [i, i * 0.5] for i in range(entries)}
order = list(range(entries))
random.Random(7).shuffle(order)
total: float = 0
for _ in range(rounds):
    for i in order:
        total += table[f"key-{i}"][0]
print(total)
