"""Evaluations during training: how strong the learner is, and whether it is the best so far."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any

from keisei.errors import CheckpointError, CheckpointWriteError, RunDatabaseError
from keisei.evaluation.matches import Player, PlayerLike, play_match
from keisei.evaluation.records import recorded_game, write_record
from keisei.evaluation.results import MatchResult
from keisei.games.contract import GameSpec
from keisei.games.offers import RecordedGame
from keisei.learners.contract import Learner
from keisei.policies.players.saved_player import SavedPlayer
from keisei.ranges import MAX_SEED
from keisei.runs.archive import CheckpointArchive
from keisei.runs.checkpoint import checkpoint_name, load_checkpoint
from keisei.runs.database import RunDatabase
from keisei.runs.directory import RunDirectory
from keisei.runs.replays import SUFFIX, GameReplay, write_replay
from keisei.runs.rows import EvaluationRow, GameRow
from keisei.training.events import Counters, Evaluation
from keisei.training.regimes.registry import regime_of
from keisei.training.settings import TrainConfig
from keisei.training.standings import rate_run


class Examiner:
    """Plays the matches of a run's evaluations and stores their results.

    The newest weights play against every opponent of the settings and against the ``best`` checkpoint. They become
    ``best`` if they score ``evaluation.gate`` against it. In games of three seats and more they have one seat, and the
    opponent has the others. Another run plays at its own temperature, as in every other match.
    """

    def __init__(
        self,
        run: RunDirectory,
        config: TrainConfig,
        spec: GameSpec,
        store: CheckpointArchive,
        database: RunDatabase,
        tell: Callable[[str], None],
    ) -> None:
        self._run, self._config, self._spec = run, config, spec
        self._store, self._database, self._tell = store, database, tell
        self._regime = regime_of(config)

    def examine(self, learner: Learner[Any], counters: Counters, checkpoint: Path | None) -> Evaluation:
        """Plays an evaluation. ``checkpoint`` has these weights; None means that they could not be saved and cannot
        become best."""
        began = time.monotonic()
        name = checkpoint_name(counters.update)
        temperature = self._config.evaluation.temperature
        newest = Player(name, self._regime.current_policy(learner, self._spec, temperature))
        opponents: list[PlayerLike] = list(self._config.evaluation.opponents)
        best = self._best_player()
        if best is not None and best.name != name:
            opponents.append(best)
        rows = tuple(self._meet(newest, opponent, counters) for opponent in opponents)
        is_best = checkpoint is not None and self._passes(rows, best) and self._mark_best(checkpoint)
        self._keep_ratings(counters.update)
        return Evaluation(counters.update, rows, is_best, time.monotonic() - began)

    def _best_player(self) -> Player | None:
        path = self._store.best_path()
        if path is None:
            return None
        try:
            saved = SavedPlayer.of(load_checkpoint(path), self._run, path.name)
            policy = saved.policy(self._spec, self._config.evaluation.temperature)
        except CheckpointError as error:
            self._tell(f"the best checkpoint can't be loaded, so the next one replaces it: {error}")
            return None
        return Player(path.name, policy)

    def _mark_best(self, checkpoint: Path) -> bool:
        try:
            self._store.mark_best(checkpoint)
        except CheckpointWriteError as error:  # the disk is full, but training can continue
            self._tell(str(error))
            return False
        return True

    def _passes(self, rows: tuple[EvaluationRow, ...], best: Player | None) -> bool:
        """Checks if these weights are better than the best so far. With a gate of 0.5, a tie is not enough."""
        against_best = [row.score for row in rows if best is not None and row.opponent == best.name]
        return not against_best or (against_best[0] >= self._config.evaluation.gate and against_best[0] > 0.5)

    def _meet(self, learner: Player, opponent: PlayerLike, counters: Counters) -> EvaluationRow:
        settings = self._config.evaluation
        match = play_match(
            self._config.env.game,
            self._config.env.game_options(),
            learner,
            opponent,
            settings.games,
            (self._config.run.seed + counters.update) & MAX_SEED,
            opening_plies=settings.opening_plies,
            record=settings.records > 0,
            root=self._run.root,
        )
        row = _row(match, counters)
        try:
            with self._database.batch():
                self._database.add_evaluation(row)
                self._database.add_games(self._write_records(match, counters.update))
        except (RunDatabaseError, OSError) as error:
            self._tell(f"the match against {row.opponent} is not kept: {error}")
        return row

    def _write_records(self, match: MatchResult, update: int) -> list[GameRow]:
        """Writes the first games of a match to files, and returns a row for each. A replay is written of every game,
        and a record where the game has a format for it."""
        kept = []
        for number in range(self._config.evaluation.records):
            if number >= len(match.games) or not match.games[number].actions:
                break
            game, record = match.games[number], recorded_game(match, number)
            opponent = Path(match.players[1]).name.replace(":", "-")
            stem = self._run.games / f"{checkpoint_name(update)}-{opponent}-{number}"
            path = stem.with_name(stem.name + SUFFIX)
            write_replay(self._replay(match, number, record), path)
            if match.record_format is not None:
                path = write_record(match, number, stem)
            first = replace(game, seat=0).tally.score  # of the player in seat 0
            others = " and ".join(dict.fromkeys(record.names[1:]))
            where = str(path.relative_to(self._run.path))
            kept.append(
                GameRow(update, time.time(), record.names[0], others, first, game.plies, game.ending, where)
            )
        return kept

    def _replay(self, match: MatchResult, number: int, record: RecordedGame) -> GameReplay:
        game = self._config.env.game
        return GameReplay(
            game,
            record.actions,
            match.options,
            match.seed,
            number,
            record.names,
            record.scores,
            record.ending,
        )

    def _keep_ratings(self, update: int) -> None:
        try:
            self._database.add_ratings(rate_run(self._database, update))
        except RunDatabaseError as error:
            self._tell(f"ratings are not kept: {error}")


def _row(match: MatchResult, counters: Counters) -> EvaluationRow:
    tally, score, elo = match.tally(), match.score, match.elo
    row = EvaluationRow(
        update=counters.update,
        step=counters.transitions,
        time=time.time(),
        player=match.players[0],
        opponent=match.players[1],
        wins=tally.wins,
        draws=tally.draws,
        losses=tally.losses,
        score=score.value,
        low=score.low,
        high=score.high,
        elo=elo.value,
        elo_low=elo.low,
        elo_high=elo.high,
        seats=match.seats,
    )
    if not match.by_returns:
        return row
    gained = match.mean_return
    return replace(
        row,
        mean_return=gained.value,
        return_low=gained.low if isfinite(gained.low) else None,
        return_high=gained.high if isfinite(gained.high) else None,
        opponent_return=match.opponent_return,
    )
