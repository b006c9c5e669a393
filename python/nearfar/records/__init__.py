"""Records: what a run leaves behind, as validated models with a published JSON Schema."""
