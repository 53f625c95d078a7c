"""Files for VS Code: tasks, a debugger's configurations, and clangd's settings.

entries.py has the entries as plain data. merge.py adds them to the existing files, which belong to the user:
it edits their text in place, keeps their comments and removes nothing.
"""
