"""What changed between two answers of buildtool: a room of its own, which reads files and asks nobody."""
