"""`python -m buildtool`: the command line."""

from buildtool.fronts.cli.main import main

main()
