"""Plans for other tools: TensorFlow Lite Micro, trace viewers, and footprints of networks without a board."""
