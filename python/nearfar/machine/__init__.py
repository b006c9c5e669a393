"""This machine: its nodes, caches, devices and tiers, and conditions that disturb measurements."""
