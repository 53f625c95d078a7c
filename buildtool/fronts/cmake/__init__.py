"""The CMake package: buildtoolConfig.cmake and what it includes, and the answers that they ask for.

The .cmake files know how a library, a rule and a test are made in CMake. Everything about networks and boards
they ask Python: run.py is what they call, answering.py writes each answer as CMake's own commands, and
quoting.py says where all of this lies.
"""
