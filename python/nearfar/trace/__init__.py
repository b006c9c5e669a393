"""What programs ask of memory: recording it, reading it back, other tools' forms of it."""
