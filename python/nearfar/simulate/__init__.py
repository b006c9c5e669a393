"""Memories under a load that is told in numbers: what it takes, in time and in energy."""
