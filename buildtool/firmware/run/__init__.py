"""Runs a linked firmware image, compares it with a reference, validates and profiles it."""
