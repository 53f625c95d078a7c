"""The front: all plans that no other plan beats in memory and in work, and the choice among them."""
