"""Quantises float networks: the answer to `quantize`.

The quantisers are third-party packages: ai-edge-quantizer for .tflite, onnxruntime.quantization for .onnx.
They run in a child process (worker.py), and so do float networks. This package prepares networks and data,
and compares the results.
"""
