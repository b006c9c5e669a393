"""Memory traces of programs: recording, reading, and conversion from other tools' formats."""
