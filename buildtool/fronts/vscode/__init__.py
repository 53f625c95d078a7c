"""Files for VS Code: tasks, a debugger's configurations, and clangd's settings.

entries.py has the entries as plain data. merge.py adds them to the existing files. It edits their text in
place and keeps their comments: people own these files, and buildtool only adds to them.
"""
