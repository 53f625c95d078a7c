"""Fronts for the command line, for build systems other than SCons, and for editors."""
