"""Finds compilers and runs programs, for several target families."""
