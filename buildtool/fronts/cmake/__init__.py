"""The CMake package: buildtoolConfig.cmake, the files that it includes, and the Python code that they call.

The .cmake files make libraries, rules and tests in CMake. They know nothing about networks and boards: they
call run.py, and answering.py writes the answer as CMake commands. quoting.py finds the folder of the package.
"""
