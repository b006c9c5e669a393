"""The report: one self-contained HTML page, one file a section."""
