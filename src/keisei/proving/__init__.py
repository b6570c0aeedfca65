"""Shows that what we promise holds: the same bits wherever workers run, and nothing lost whatever happens."""
