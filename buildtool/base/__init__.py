"""What every room stands on: plain values, and nothing of networks or boards."""
