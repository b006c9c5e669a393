"""Start programs, inspect program files, and call nearfar's helper programs."""
