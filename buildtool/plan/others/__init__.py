"""Results for other tools: TensorFlow Lite Micro, trace viewers, sums for networks that are not planned."""
