"""Reads quantised ONNX networks (QDQ and QOperator) as the Graph that a .tflite file gives."""
