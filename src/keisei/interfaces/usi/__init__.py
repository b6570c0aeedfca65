"""USI, the protocol between Shogi programs: our engine, games against the engines of others, and their clocks.

``protocol`` and ``engine`` import nothing heavy, since a GUI waits for the first answer.
"""
