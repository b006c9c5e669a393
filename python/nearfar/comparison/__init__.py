"""Comparison of two runs, profiles or answers: single figures and whole sections."""
