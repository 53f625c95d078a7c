"""Planning methods of other systems, with our accounting: msf-CNN's fusion and xcore-opt's strips.

`msf` follows Huang et al., "msf-CNN: Patch-based Multi-Stage Fusion with Convolutional Neural Networks for
TinyML" (2025), with the formulas of its published code, which its tables follow. `chains` has the Pareto
front that solves its two problems at once.
"""
