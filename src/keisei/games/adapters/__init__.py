"""Adapters to and from other libraries. Each is imported only when it is used.

``to_gymnasium`` and ``to_pettingzoo`` make environments of Keisei's games. ``from_pettingzoo`` and
``from_openspiel`` make Keisei games of theirs, also as ``make_game("pettingzoo:NAME")`` and
``make_game("openspiel:NAME")``.
"""
