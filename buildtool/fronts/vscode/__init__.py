"""Files for VS Code: tasks, a debugger's configurations, and clangd's settings.

What is wanted is plain data (wanted.py). It is merged into the files that are there (merge.py), whose text is
edited in place, comments and all: people own these files, and buildtool only adds to them.
"""
