"""Text for people: the service's answers as text and tables. It plans and prints nothing."""
