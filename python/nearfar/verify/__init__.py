"""Crash exploration: the native explorer as a program, its findings, images kept, SARIF."""
