"""Run programs with their memory on chosen tiers."""
