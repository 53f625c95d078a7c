"""The one way from a model and options to a checked plan."""
