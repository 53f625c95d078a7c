"""The front end for PlatformIO: a library to link into a project, and the answers to its script.

Begin at library/SConscript, which runs inside PlatformIO. question.py answers its question, in the Python
that has buildtool.
"""
