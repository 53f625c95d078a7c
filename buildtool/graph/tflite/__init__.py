"""The .tflite file format: a reader for untrusted files, and a writer."""
