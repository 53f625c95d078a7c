"""Running a linked image: execute, compare with the reference, validate, profile."""
