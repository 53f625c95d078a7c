"""What several target families share to find compilers and to run programs."""
