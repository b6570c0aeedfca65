"""The speed of games: Shogi beside cshogi and pgx, and Ludo, in one run on one core.

Shogi is random self-play from the start position, 512 plies at most, restart included: (a) legal moves and a step;
(b) plus a mask of 2187 actions; (c) plus observation planes; (d) plus the repetition rule, which is all that training
needs. Ours applies the repetition rule in every mode.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks import ludo
from benchmarks.measure import Contender, machine, race, rate_of, tell
from keisei.errors import KeiseiError
from keisei.games import make_game
from keisei.games.shogi import Board, perft
from keisei.native import core

MODES = {"a": "legal moves and step", "b": "+ mask", "c": "+ planes", "d": "+ repetition"}
MAX_PLIES = 512
BATCH = 256
TRAINING_BATCH = 64
"""About the batch of a worker."""
HAND_HEAVY = "l6nl/5+P1gk/2np1S3/p1p4Pp/3P2Sp1/1PPb2P1P/P5GS1/R8/LN4bKL w RGgsn5p 1"


@dataclass(frozen=True)
class GamesReport:
    machine: str
    instruction_set: str
    steps_per_second: dict[str, dict[str, float]]
    """By player, then by mode."""
    hand_heavy_expansions_per_second: float
    perft_nodes_per_second: float
    two_threads: float
    """Steps of two threads over steps of one."""
    training_batch_steps_per_second: float
    """Mode (d), all that training needs, in batches of 64."""
    training_batch_over_cshogi: float
    ludo_per_second: dict[str, float]
    """Steps or decisions of Ludo, by the names of ``benchmarks.ludo``."""


def run(*, rounds: int, seconds: float, peers: bool, as_json: bool, console: Console) -> None:
    players: dict[str, Callable[[str], Contender]] = {"keisei": _keisei, "cshogi": _cshogi}
    if peers:
        players["pgx"] = _pgx
    contenders = {
        f"{player}/{mode}": build(mode)
        for player, build in players.items()
        for mode in MODES
        if (player, mode) not in {("pgx", "a"), ("pgx", "d")}  # it always has the mask and no such rule
    }
    contenders["training"] = _keisei("d", TRAINING_BATCH)
    contenders["threads/1"] = lambda seconds: _in_threads(1, seconds)
    contenders["threads/2"] = lambda seconds: _in_threads(2, seconds)
    contenders["hand-heavy"] = _hand_heavy
    contenders["perft"] = _perft
    contenders |= {f"ludo/{name}": contender for name, contender in ludo.contenders().items()}
    rates = race(contenders, seconds, rounds, console)
    report = GamesReport(
        machine=machine(),
        instruction_set=core.INSTRUCTION_SET,
        steps_per_second={
            player: {mode: rates[f"{player}/{mode}"] for mode in MODES if f"{player}/{mode}" in rates}
            for player in players
        },
        hand_heavy_expansions_per_second=rates["hand-heavy"],
        perft_nodes_per_second=rates["perft"],
        two_threads=rates["threads/2"] / rates["threads/1"],
        training_batch_steps_per_second=rates["training"],
        training_batch_over_cshogi=rates["training"] / rates["cshogi/d"],
        ludo_per_second={name: rates[f"ludo/{name}"] for name in ludo.CONTENDERS},
    )
    tell(report, _show, as_json=as_json, console=console)


def _show(report: GamesReport, console: Console) -> None:
    table = Table(title="Shogi, steps per second on one core", title_justify="left")
    table.add_column("")
    for mode, what in MODES.items():
        table.add_column(f"({mode}) {what}", justify="right")
    for player, rates in report.steps_per_second.items():
        table.add_row(player, *(f"{rates[mode]:,.0f}" if mode in rates else "-" for mode in MODES))
    ours = report.steps_per_second["keisei"]
    for player, rates in report.steps_per_second.items():
        if player != "keisei":
            ratios = (f"{ours[mode] / rates[mode]:.1f} x" if mode in rates else "-" for mode in MODES)
            table.add_row(f"keisei / {player}", *ratios, style="bold")
    console.print(table)
    console.print(
        f"(d) in batches of {TRAINING_BATCH}         {report.training_batch_steps_per_second:10,.0f} steps/s, "
        f"{report.training_batch_over_cshogi:.1f} x cshogi"
    )
    console.print(f"perft(5) from the start      {report.perft_nodes_per_second / 1e6:8.1f} M nodes/s")
    console.print(
        f"mask and planes, hand-heavy  {report.hand_heavy_expansions_per_second:10,.0f} positions/s"
    )
    console.print(f"two threads over one         {report.two_threads:8.2f} x")
    _show_ludo(report.ludo_per_second, console)
    console.print(f"{report.machine}; core: {report.instruction_set}; batch {BATCH}")


def _show_ludo(rates: dict[str, float], console: Console) -> None:
    table = Table(title="Ludo, per second on one core", title_justify="left", show_header=False)
    table.add_column()
    table.add_column(justify="right")
    for name, what in ludo.CONTENDERS.items():
        table.add_row(what, f"{rates[name]:,.0f}")
    table.add_row("batch / loop", f"{rates['batch'] / rates['board']:.0f} x", style="bold")
    console.print(table)


def _keisei(mode: str, batch: int = BATCH) -> Contender:
    game = make_game("shogi", batch=batch, seed=1, max_plies=MAX_PLIES)
    mask = np.empty((batch, game.spec.num_actions), np.bool_)
    planes = np.empty((batch, *game.spec.observation.shape), np.uint8)

    def play() -> int:
        for _ in range(4):
            if mode >= "b":
                game.legal(out=mask)
            if mode >= "c":
                game.observe(out=planes)
            game.step(game.random_actions())
        return 4 * batch

    return lambda seconds: rate_of(play, seconds)


def _cshogi(mode: str) -> Contender:
    cshogi, label, features, planes = _import_cshogi()
    board = cshogi.Board()
    rng = random.Random(1)
    mask = np.zeros(2187, np.bool_)

    def play() -> int:
        for _ in range(64):
            moves = list(board.legal_moves)
            drawn = mode >= "d" and board.is_draw() != cshogi.NOT_REPETITION
            if not moves or board.move_number > MAX_PLIES or drawn:
                board.reset()
                moves = list(board.legal_moves)
            if mode >= "b":
                mask[:] = False
                turn = board.turn
                mask[[label(move, turn) for move in moves]] = True
            if mode >= "c":
                features(board, *planes)
            board.push(rng.choice(moves))
        return 64

    return lambda seconds: rate_of(play, seconds)


def _import_cshogi() -> tuple[Any, Any, Any, tuple[Any, ...]]:
    try:
        import cshogi
        from cshogi import dlshogi
    except ImportError as error:
        raise KeiseiError(
            "this benchmark compares with cshogi; install it: pip install 'keisei[peers]'"
        ) from error
    planes = (
        np.empty((dlshogi.FEATURES1_NUM, 9, 9), np.float32),
        np.empty((dlshogi.FEATURES2_NUM, 9, 9), np.float32),
    )
    return cshogi, dlshogi.make_move_label, dlshogi.make_input_features, planes


def _pgx(mode: str) -> Contender:
    try:
        import jax
        import jax.numpy as jnp
        import pgx
    except ImportError as error:
        raise KeiseiError("--peers compares with pgx; install it: pip install 'keisei[peers]'") from error
    env = pgx.make("shogi")

    def step(state: Any, key: Any) -> tuple[Any, Any]:
        logits = jnp.log(state.legal_action_mask.astype(jnp.float32))
        action = jax.random.categorical(key, logits, axis=-1)
        following = jax.vmap(env.step)(state, action)
        seen = following.observation.sum() if mode >= "c" else following.legal_action_mask.sum()
        return following, seen

    compiled = jax.jit(step)
    key = jax.random.PRNGKey(1)
    state = jax.jit(jax.vmap(env.init))(jax.random.split(key, BATCH))
    compiled(state, key)[1].block_until_ready()
    box = [state, key]

    def play() -> int:
        box[1], now = jax.random.split(box[1])
        box[0], seen = compiled(box[0], now)
        seen.block_until_ready()
        return BATCH

    return lambda seconds: rate_of(play, seconds)


def _in_threads(count: int, seconds: float) -> float:
    """Measures mode (d) in several Python threads, each with its own games. The core releases the GIL."""
    rates = [0.0] * count
    contenders = [_keisei("d") for _ in range(count)]

    def work(index: int) -> None:
        rates[index] = contenders[index](seconds)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(rates)


def _hand_heavy(seconds: float) -> float:
    """Packed positions with some 200 legal moves, expanded into masks and planes."""
    game = make_game("shogi", start=HAND_HEAVY)
    packed = np.repeat(np.frombuffer(Board(HAND_HEAVY).pack(), np.uint8)[None], 256, axis=0)
    planes, mask = game.unpack(packed)

    def expand() -> int:
        game.unpack(packed, planes, mask)
        return len(packed)

    return rate_of(expand, seconds)


def _perft(_: float) -> float:
    started = time.perf_counter()
    nodes = perft("startpos", 5)
    return nodes / (time.perf_counter() - started)
