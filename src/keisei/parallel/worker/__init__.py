"""A worker: the tables that it holds, and the players at them."""
