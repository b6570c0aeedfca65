"""Players by name: random, greedy, by simple rules, searching, or a network that only plays."""
