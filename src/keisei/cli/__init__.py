"""The ``keisei`` command: one file for each subcommand."""
