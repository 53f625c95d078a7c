"""Fronts for build systems other than SCons, and for editors: each writes down the answer of describe."""
