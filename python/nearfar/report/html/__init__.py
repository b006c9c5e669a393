"""The report: one self-contained HTML page, one module per section."""
