"""Players by name: random, greedy, by simple rules, searching, or the network of a checkpoint."""

PLAYERS = ("random", "greedy", "heuristic", "search:DEPTH")
"""The players that need no network."""


def needs_no_run(text: str) -> bool:
    """Checks if a text names one of ``PLAYERS``. What follows the colon may be wrong."""
    return text.partition(":")[0] in {player.partition(":")[0] for player in PLAYERS}
