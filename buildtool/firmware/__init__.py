"""Compile, link, and what the linked image takes."""
