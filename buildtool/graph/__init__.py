"""Networks: types, readers and a writer, rewrites, liveness, the reference executor."""
