"""Weights in shared memory: the versioned block of the learner, and the shelf of opponents."""
