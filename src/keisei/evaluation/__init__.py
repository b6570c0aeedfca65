"""How strong players are: matches, statistics, ratings, tournaments and ladders."""

from keisei.evaluation.matches import Player, as_player, play_match
from keisei.evaluation.ratings import Pairing, Rating, rate
from keisei.evaluation.records import recorded_game, write_record
from keisei.evaluation.results import MatchResult, PlayedGame
from keisei.evaluation.statistics import (
    EloDifference,
    Interval,
    Tally,
    elo_difference,
    likelihood_of_superiority,
    mean_interval,
    score_interval,
    share_interval,
)
from keisei.evaluation.tournament import MatchPlan, Tournament, ladder, ladder_step, round_robin

__all__ = [
    "EloDifference",
    "Interval",
    "MatchPlan",
    "MatchResult",
    "Pairing",
    "PlayedGame",
    "Player",
    "Rating",
    "Tally",
    "Tournament",
    "as_player",
    "elo_difference",
    "ladder",
    "ladder_step",
    "likelihood_of_superiority",
    "mean_interval",
    "play_match",
    "rate",
    "recorded_game",
    "round_robin",
    "score_interval",
    "share_interval",
    "write_record",
]
