"""Other systems' ways to plan, by our accounting: msf-CNN's fusion and xcore-opt's strips.

`msf` is after Huang et al., "msf-CNN: Patch-based Multi-Stage Fusion with Convolutional Neural Networks for
TinyML" (2025), by the formulas that its published code uses, which its tables follow. `chains` has the front
that answers its two problems at once.
"""
