"""Proofs of what Keisei promises: the same bits wherever workers run, and nothing is lost when they fail."""
