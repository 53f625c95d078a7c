"""Quantises float networks: the answer to `quantize`.

The quantisers are other people's: ai-edge-quantizer for .tflite, onnxruntime.quantization for .onnx. They and
the float networks run in a child process (worker.py). This package prepares networks and data, and measures what
the result has lost.
"""
