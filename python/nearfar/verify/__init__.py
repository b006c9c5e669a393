"""Crash exploration: the native explorer, its findings, kept images, SARIF."""
