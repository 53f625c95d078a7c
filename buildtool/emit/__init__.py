"""Emission: a plan and a graph become C sources and a weight image."""
