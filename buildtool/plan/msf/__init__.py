"""msf-CNN's fusion: its cost model, its two problems and the whole front, on chains of layers.

After Huang et al., "msf-CNN: Patch-based Multi-Stage Fusion with Convolutional Neural Networks for
TinyML" (2025); `blocks` gives the formulas that its published code uses, which its tables follow.
"""
