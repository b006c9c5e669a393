"""Simulated memories: devices, controllers, traces, counts, co-simulation, experiments."""
