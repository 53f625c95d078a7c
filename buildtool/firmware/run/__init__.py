"""Runs a linked firmware image: executes, compares with the reference, validates, profiles."""
