"""The arena problem by itself: offsets for buffers with lifetimes, bounds, greedy orders, exact search."""
