"""Emission: makes C sources and a weight image from a plan and a graph."""
