"""A run on disk: its directory, checkpoints, metrics, database and log."""
