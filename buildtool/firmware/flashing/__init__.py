"""Files for flash: what a linked image is written as."""
