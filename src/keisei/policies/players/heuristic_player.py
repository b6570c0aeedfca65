"""The player by simple rules that some games bring along."""

from __future__ import annotations

from keisei.errors import ConfigError, PolicyError
from keisei.games.contract import Array, BoolArray, FloatArray, Game, GameSpec, IntArray
from keisei.games.offers import HasHeuristic
from keisei.policies.contract import Decision, Situation, no_values
from keisei.policies.players.lookahead import row_keys

__all__ = ["HeuristicPlayer", "need_heuristic"]


class HeuristicPlayer:
    """Plays what the batch's own heuristic says (``HasHeuristic``). Equal actions are chosen at random.
    Log-probabilities are 0, since the choice is certain given its key."""

    name = "heuristic"

    def act(self, situation: Situation, selected: IntArray | None = None) -> Decision:
        game = situation.game
        if not isinstance(game, HasHeuristic):
            raise PolicyError(_refusal(game.spec))
        actions = game.heuristic_actions(selected, row_keys(situation, selected))
        return Decision(actions, no_values(len(actions)), no_values(len(actions)))

    def evaluate(self, observations: Array, legal: BoolArray) -> FloatArray:
        return no_values(len(observations))


def need_heuristic(game: Game) -> None:
    """Refuses games that bring no heuristic along."""
    if not isinstance(game, HasHeuristic):
        raise ConfigError(_refusal(game.spec))


def _refusal(spec: GameSpec) -> str:
    others = "'random'" if spec.simultaneous else "'greedy' or 'random'"  # greedy plays games in turns
    return f"{spec.name} has no heuristic of its own (HasHeuristic); take {others} instead"
