"""The examples, as package data: `examples.toml` lists them, with the files of each."""
