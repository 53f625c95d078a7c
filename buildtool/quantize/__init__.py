"""Quantises float networks: the answer to `quantize`.

The quantisers are other people's: ai-edge-quantizer for .tflite, onnxruntime.quantization for .onnx. They run
in a child process (worker.py), as float networks do. This package prepares networks and data, and compares
what comes out.
"""
