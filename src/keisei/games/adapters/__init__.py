"""Bridges to other libraries, both ways. Each is imported only when it is used.

``to_gymnasium`` and ``to_pettingzoo`` offer Keisei's games as their environments;
``from_pettingzoo`` and ``from_openspiel`` bring theirs, also as ``make_game("pettingzoo:NAME")`` and
``make_game("openspiel:NAME")``.
"""
