"""The modules that all other packages use. They know nothing about networks or boards."""
