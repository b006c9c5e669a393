"""Models that predict unmeasured quantities from measured numbers.

Each model is one file that opens with its equation, its source and its limits. Models do not access
hardware; all figures they return are ``modelled`` and have terms and an interval.
"""
