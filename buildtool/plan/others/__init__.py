"""Plans for other run times: TensorFlow Lite Micro, and footprints of networks that no board runs."""
