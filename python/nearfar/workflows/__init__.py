"""Use cases, from inputs to a result, without a command line."""
