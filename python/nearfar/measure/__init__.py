"""Measurements: which repeats, in which order, until when; the native core does the timing."""
