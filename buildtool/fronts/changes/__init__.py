"""What changed between two answers of buildtool, read from files alone."""
