"""The CMake package: buildtoolConfig.cmake and what it includes, and the answers that they ask for.

The .cmake files know how a library, a rule and a test are made in CMake. Everything about networks and boards
they ask Python: run.py is what they call, asked.py writes each answer as CMake's own commands, of which
libraries.py and toolchains.py have the content. folder.py says where all of this lies.
"""
