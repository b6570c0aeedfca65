"""Experiments of several runs: seeds, sweeps, and what can be said about them."""
