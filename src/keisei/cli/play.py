"""``keisei play``: a person plays against a run or any other player, in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from rich.console import Console
from rich.text import Text

from keisei.cli.evaluate import Root
from keisei.cli.numbers import MAX_SEED, temperature
from keisei.cli.views.terminal import Terminal
from keisei.cli.views.wording import likelihood
from keisei.errors import ConfigError, NotationError

if TYPE_CHECKING:
    from keisei.evaluation import Player
    from keisei.policies.players.finding import RunGame

HELP = """\
Write a move as the prompt shows it, or one of these words:
  moves   list all legal moves
  hint    show what your opponent would play here
  undo    take your last move back
  resign  end the game
  help    show this again"""
_HINTS = 3
_INTERRUPTED = "interrupted"
_AFTER_CTRL_C = 130
"""The exit code of a command that Ctrl-C ended."""


def play(
    opponent: Annotated[
        str,
        typer.Argument(
            help="A run, RUN@UPDATE, a checkpoint's directory, random, greedy, heuristic, or search:DEPTH."
        ),
    ],
    game: Annotated[
        str | None, typer.Option(help="The game, if the opponent is no run. The default is Shogi.")
    ] = None,
    seat: Annotated[
        int | None, typer.Option(min=1, max=128, help="Your seat: 1 begins. By default it is drawn by lot.")
    ] = None,
    temperature: Annotated[
        float,
        temperature("How freely a network plays; 0 takes its best move."),
    ] = 0.0,
    seed: Annotated[
        int | None, typer.Option(min=0, max=MAX_SEED, help="Decides all chance and lots.")
    ] = None,
    view: Annotated[
        int | None,
        typer.Option(min=1, max=128, help="The seat whose side of the board is below; yours by default."),
    ] = None,
    record: Annotated[
        Path | None, typer.Option(help="Write the game into this file at its end (Shogi: .kif, .csa, .sfen).")
    ] = None,
    root: Root = Path("runs"),
) -> None:
    """Play against a run or any other player. You write your moves; `help` says what else you can write."""
    seed = int(np.random.default_rng().integers(1 << 32)) if seed is None else seed
    found, player = _opponent(opponent, game, root, temperature)
    spec = found.spec
    if spec.simultaneous or spec.seats < 2:
        raise ConfigError(f"{spec.name} has no turns of two or more players; play another game")
    if seat is not None and seat > spec.seats:
        raise ConfigError(f"--seat {seat}: {spec.name} has the seats 1 to {spec.seats}")
    if record is not None:
        _check_record(record, found)
    if view is not None and view > spec.seats:
        raise ConfigError(f"--view {view}: {spec.name} has the seats 1 to {spec.seats}")
    mine = int(np.random.default_rng(seed).integers(spec.seats)) if seat is None else seat - 1
    seen_from = mine if view is None else view - 1
    Session(found, player, mine, seen_from, seed, Terminal(highlight=False)).run(record)


def _opponent(text: str, named: str | None, root: Path, temperature: float) -> tuple[RunGame, Player]:
    """Gets the game, and the opponent who plays it."""
    from keisei.cli.evaluate import need_players
    from keisei.cli.match import game_of_players
    from keisei.policies.players.saved_player import load_player

    found = game_of_players([text], named, root)
    need_players([text], found)
    return found, load_player(text, found.spec, root, temperature)


def _check_record(path: Path, game: RunGame) -> None:
    """Checks before the game that it can be written."""
    from keisei.evaluation.records import record_suffixes

    form = game.spec.record_format
    known = () if form is None else record_suffixes(form)
    if path.suffix not in known:
        formats = ", ".join(known) or "no format at all"
        raise ConfigError(f"--record {path}: {game.spec.name} has {formats}")
    if not path.resolve().parent.is_dir():
        raise ConfigError(f"--record {path}: there is no folder {path.resolve().parent}; make it first")


class Session:
    """One game of a person against a player."""

    def __init__(
        self, game: RunGame, player: Player, seat: int, view: int, seed: int, console: Console
    ) -> None:
        from keisei.games import make_game
        from keisei.games.offers import ShowsText
        from keisei.policies.contract import Situation

        self._about, self._player, self._seat, self._view = game, player, seat, view
        self._console = console
        self._game = make_game(game.name, batch=1, seed=seed, **dict(game.options))
        if isinstance(self._game, ShowsText):
            self._game.keep_last_positions()
        self._situation = Situation(self._game, seed, 0)
        self._actions: list[int] = []
        self._before: list[tuple[bytes, int]] = []
        """The state of the game before each move of the person, and the number of actions until then."""

    def run(self, record: Path | None) -> None:
        """Plays to the end, and writes the game even after an error or Ctrl-C."""
        spec = self._about.spec
        self._say(
            f"You play {spec.name} in seat {self._seat + 1} of {spec.seats} against {self._player.name}."
        )
        self._say(HELP)
        try:
            scores, ending = self._play()
        except KeyboardInterrupt:
            self._say(f"\nThe game is interrupted after {len(self._actions)} plies.")
            self._write((), _INTERRUPTED, record)
            raise typer.Exit(_AFTER_CTRL_C) from None
        except BaseException:
            self._write((), _INTERRUPTED, record)
            raise
        self._tell_result(scores, ending)
        self._write(scores, ending, record)

    def _play(self) -> tuple[tuple[float, ...], str]:
        """Plays the game. Returns the scores, and how the game ended."""
        while True:
            action = self._decide()
            if action is None:
                return self._resigned(), "resignation"
            self._actions.append(action)
            step = self._game.step(np.array([action], np.int32))
            self._situation.advance()
            if step.done[0]:
                self._show_end()
                return tuple(map(float, step.scores[0])), self._about.spec.endings[int(step.ending[0])]

    def _decide(self) -> int | None:
        """Gets the action of the seat to move, a person's or a player's; None if the person resigns."""
        from keisei.games.naming import move_name

        if int(self._situation.rows.seat[0]) == self._seat:
            return self._ask()
        action = int(self._player.policy.act(self._situation).actions[0])
        self._say(f"{self._player.name} plays {move_name(self._game, action)}")
        return action

    def _ask(self) -> int | None:
        self._show()
        while True:
            names = self._names()
            try:
                word = self._console.input(self._prompt(names)).strip()
            except EOFError:
                return None
            if word == "resign" and word not in names:
                return None
            if word in names or not self._obey(word, names):
                action = self._read(word, names)
                if action is not None:
                    self._before.append((self._game.save(), len(self._actions)))
                    return action

    def _prompt(self, names: dict[str, int]) -> Text:
        """Shows a move that is legal here, in each way in which it may be written."""
        from keisei.games.naming import move_examples

        *others, last = move_examples(self._game, next(iter(names.values())))
        ways = f"{', '.join(others)} or {last}" if others else last
        return Text(f"your move (such as {ways}): ")

    def _obey(self, word: str, names: dict[str, int]) -> bool:
        """Carries out a word that is no move, such as ``help``. Returns False if it does not know the word."""
        if word == "help":
            self._say(HELP)
        elif word == "moves":
            between = ", " if any(" " in name for name in names) else " "
            self._console.print(Text(between.join(names)))
        elif word == "hint":
            self._say(self._hint())
        elif word == "undo":
            self._undo()
        else:
            return not word
        return True

    def _read(self, word: str, names: dict[str, int]) -> int | None:
        """Finds the action that a person means; None if there is none, or if the text is ambiguous."""
        from keisei.games.naming import move_examples, read_move

        try:
            found = read_move(self._game, word, names)
        except NotationError as error:
            self._say(f"{error}; write `moves` to see them all")
            return None
        if len(found) == 1:
            return found[0]
        self._say(f"{word!r} may be any of these; write the one that you mean as it stands here:")
        for action in found:
            self._say(f"  {'  '.join(move_examples(self._game, action))}")
        return None

    def _names(self) -> dict[str, int]:
        """Lists the legal actions by their names."""
        from keisei.games.naming import move_names

        return move_names(self._game, np.flatnonzero(self._situation.legal[0]).tolist())

    def _hint(self) -> str:
        """Says what the opponent would play, with chances if it is a network."""
        from keisei.games.naming import move_name

        chances = getattr(self._player.policy, "log_probabilities", None)
        if chances is None:
            return move_name(self._game, int(self._player.policy.act(self._situation).actions[0]))
        observations, legal = self._situation.observations, self._situation.legal
        found = np.exp(chances(observations, legal)[0])
        best = np.argsort(-found, kind="stable")[: min(_HINTS, int(legal[0].sum()))].tolist()
        moves = [
            f"{move_name(self._game, action)} ({likelihood(float(found[action]), 0)})" for action in best
        ]
        value = float(self._player.policy.evaluate(observations, legal)[0])
        return f"{', '.join(moves)}; it expects you to score {value:+.2f}"

    def _undo(self) -> None:
        if not self._before:
            self._say("there is no move of yours to take back")
            return
        state, count = self._before.pop()
        self._game.load(state)
        self._situation.advance()
        del self._actions[count:]
        self._show()

    def _resigned(self) -> tuple[float, ...]:
        """Computes the scores if the person loses and the others share the win."""
        seats = self._about.spec.seats
        return tuple(-1.0 if seat == self._seat else 1 / (seats - 1) for seat in range(seats))

    def _show(self) -> None:
        from keisei.games.pictures import picture

        self._say(f"\n{picture(self._game, view=self._view)}\n")

    def _show_end(self) -> None:
        from keisei.games.pictures import last_picture

        self._say(f"\n{last_picture(self._game, view=self._view)}\n")

    def _tell_result(self, scores: tuple[float, ...], ending: str) -> None:
        mine, best = scores[self._seat], max(scores)
        drawn = scores.count(mine) == len(scores)
        result = "It is a draw" if drawn else "You win" if mine == best else "You lose"
        self._say(f"{result} after {len(self._actions)} plies: {ending.replace('_', ' ')}.")

    def _write(self, scores: tuple[float, ...], ending: str, record: Path | None) -> None:
        from keisei.games.offers import RecordedGame

        form = self._about.spec.record_format
        if record is None or form is None:
            return
        seats = range(self._about.spec.seats)
        names = tuple("You" if seat == self._seat else self._player.name for seat in seats)
        form.write(RecordedGame(self._about.options, tuple(self._actions), names, scores, ending), record)
        self._say(f"Record: {record}")

    def _say(self, text: str) -> None:
        self._console.print(Text(text), soft_wrap=True)
