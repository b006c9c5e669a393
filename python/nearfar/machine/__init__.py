"""This machine: its nodes, caches, devices and tiers, and what would spoil a measurement on it."""
