"""The ``keisei`` command: one file for each subcommand. They parse, build what is asked for, and call it."""
