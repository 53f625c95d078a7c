"""Front ends: the command line, Python, build systems other than SCons, and editors."""
