"""Tests inside a virtual machine with far memory, and the harness that boots it."""
