"""Text for people: the service's answers as text and tables. This package plans and prints nothing."""
