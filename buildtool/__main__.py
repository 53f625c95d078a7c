"""`python -m buildtool`: the command line."""

from buildtool.cli import main

main()
