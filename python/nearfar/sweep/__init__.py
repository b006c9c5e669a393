"""Sweeps over grids of verbs: suite files, cells cached by content, local or cluster runs."""
