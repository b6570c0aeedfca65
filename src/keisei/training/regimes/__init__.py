"""Regimes: their settings, their loops, and what the loops share."""
