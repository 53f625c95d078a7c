"""The .tflite file format: a reader that trusts nothing, and a writer."""
