"""Records: the results of a run, as validated models with a published JSON Schema."""
