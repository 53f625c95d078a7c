"""Emission: makes C sources, headers and a weight image from a plan and a graph."""
