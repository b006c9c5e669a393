"""Simulate memories under a load given in numbers: time and energy."""
