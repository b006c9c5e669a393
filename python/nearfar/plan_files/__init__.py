"""Plan files (docs/formats/plan.md) and the tiers that they name, as values."""
