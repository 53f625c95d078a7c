"""Other systems' ways to plan, by our accounting: msf-CNN's fusion and xcore-opt's strips.

`msf_*` is msf-CNN's cost model, its two problems and the whole front, on chains of layers, after Huang
et al., "msf-CNN: Patch-based Multi-Stage Fusion with Convolutional Neural Networks for TinyML" (2025);
`msf_solve` gives the formulas that its published code uses, which its tables follow.
"""
