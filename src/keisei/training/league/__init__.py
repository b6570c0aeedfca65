"""The league: a pool of opponents for the learner, made of its own earlier weights, players by name, and other runs."""
