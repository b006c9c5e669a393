"""Numbers in, number out: models that predict what was not measured.

Each model is one file that opens with its equation, its source and its limits. None touches
hardware; all figures they return are ``modelled`` and carry their terms and an interval.
"""
