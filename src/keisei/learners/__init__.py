"""Learners: a batch in, new weights out. They know nothing of workers."""
