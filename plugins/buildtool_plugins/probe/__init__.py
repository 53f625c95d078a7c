"""Programs that bring an image into a board's flash."""
