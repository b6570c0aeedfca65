"""How weights get better: a batch in, new weights out. Learners know nothing of workers."""
