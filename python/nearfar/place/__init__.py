"""Programs run with their memory where it was asked to be."""
