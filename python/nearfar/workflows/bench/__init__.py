"""Use cases of ``nearfar bench``: a module for each benchmark, from its options to its record."""
