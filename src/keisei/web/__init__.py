"""The dashboard: pages that show runs, and boards to play on, served to a browser."""
