"""The command line: one file a verb, each importing what it needs only when it runs."""
