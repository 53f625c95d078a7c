"""Random edits of a small project, answered from what is kept, and from nothing."""
