"""LLVM's models of cores' pipelines: how many cycles blocks of code take."""
