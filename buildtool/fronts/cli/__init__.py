"""The command line: its commands, what it asks, and what it prints beside answers."""
