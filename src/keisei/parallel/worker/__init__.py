"""A worker: the tables in its hand, and who sits at them."""
