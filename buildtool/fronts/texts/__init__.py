"""Text for people: answers of the service as tables. No room is imported, nothing is printed."""
