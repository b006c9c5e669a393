"""Results as tables for a terminal of 80 columns: one function per result model."""
