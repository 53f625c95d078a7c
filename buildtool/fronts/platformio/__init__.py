"""The front for PlatformIO: a library to link into a project, and what its script asks.

Begin at library/SConscript, which runs inside PlatformIO; question.py answers it with the Python that has
buildtool.
"""
