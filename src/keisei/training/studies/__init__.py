"""Looks at training and at trained agents: where time goes, episodes, Schelling diagrams."""
