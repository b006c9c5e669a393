"""The command line: one file for each verb. A file imports what it needs when the verb runs."""
