"""Charts of the report and of picture files: one module per kind of chart."""
