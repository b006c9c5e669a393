"""Grids of verbs: suite files, cells found again by what they are, runs here or on a cluster."""
