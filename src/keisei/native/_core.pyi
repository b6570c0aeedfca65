"""The native core's surface. It is built once for each instruction set; ``native.py`` picks one.

Squares are (file - 1) * 9 + (rank - 1): 1a is 0, 1i is 8, 9i is 80. Piece codes are 1 pawn, 2 lance,
3 knight, 4 silver, 5 bishop, 6 rook, 7 gold, 8 king; 9 … 12, 13 and 14 are the promoted pawn, lance,
knight, silver, bishop and rook; white's have 16 added; 0 is an empty square. Hands list the counts in
the order 1 … 7. A move is ``to | from << 7 | promote << 14``, and a drop has ``from = 80 + piece``.
Seats and turns are 0 for black and 1 for white.
"""

import numpy as np
from numpy.typing import NDArray

INSTRUCTION_SET: str
PACKED_BYTES: int
PLANES: int
ACTIONS: int
ENDINGS: tuple[str, ...]
PLANE_SCALES: tuple[float, ...]
FLAT_PLANES: tuple[int, ...]
"""The planes that have one value on all squares."""
MAX_SEARCH_DEPTH: int
MATE: int
"""The score of a won game in ``search``, less one for each ply that it takes."""

class PositionError(ValueError):
    """The pieces make no possible position; the message names the rule."""

class PlayedPosition:
    """A position and the moves that led to it."""

    def __init__(self, packed: bytes) -> None: ...
    @staticmethod
    def from_pieces(board: bytes, hands: bytes, turn: int, ply: int, strict: bool = True) -> PlayedPosition:
        """``board`` has 81 piece codes, ``hands`` 7 counts for black and 7 for white, ``ply`` counts from 0.
        Without ``strict``, composed positions pass too: more pieces than one set has, and lances and
        knights that can never move; they can be searched, but not packed."""
    def board(self) -> bytes: ...
    def hands(self) -> bytes: ...
    @property
    def turn(self) -> int: ...
    @property
    def ply(self) -> int: ...
    @property
    def key(self) -> int:
        """64-bit hash of board, hands and turn."""
    def legal_moves(self) -> list[int]: ...
    def is_legal(self, move: int) -> bool: ...
    def push(self, move: int) -> None:
        """Play a legal move; ValueError for any other, the position being as it was."""
    def pop(self) -> int:
        """Take the last move back; IndexError where there is none."""
    def history(self) -> list[int]: ...
    def is_check(self) -> bool: ...
    def can_declare_win(self) -> bool: ...
    def repetitions(self) -> int:
        """How often this position stood before in this game: 0 … 3."""
    def ending(self) -> tuple[int, int]:
        """(index into ENDINGS, winner): 0 means that the game goes on; the winner is -1 for a draw."""
    def action_of(self, move: int) -> int: ...
    def move_of(self, action: int) -> int:
        """The legal move with this action number; ValueError where there is none."""
    def perft(self, depth: int) -> int: ...
    def pack(self) -> bytes: ...
    def copy(self) -> PlayedPosition: ...

class Batch:
    """Independent games, stepped together. All arrays are C-contiguous; the GIL is released."""

    def __init__(
        self,
        batch: int,
        seed: int,
        first_game: int,
        start: bytes,
        max_plies: int,
        declaration: bool,
        limit_draws: bool,
        win: float,
        loss: float,
        draw: float,
        ply_cost: float,
        material: float,
        discount: float,
        keep_material: bool,
    ) -> None: ...
    def rows(self, seat: NDArray[np.int32], episode: NDArray[np.int32], ply: NDArray[np.int32]) -> None: ...
    def observe(self, out: NDArray[np.uint8]) -> None: ...
    def legal(self, out: NDArray[np.bool_]) -> None: ...
    def pack(self, out: NDArray[np.uint8]) -> None: ...
    def random_actions(self, out: NDArray[np.int32]) -> None: ...
    def step(
        self,
        actions: NDArray[np.int32],
        rewards: NDArray[np.float32],
        terminated: NDArray[np.bool_],
        truncated: NDArray[np.bool_],
        ending: NDArray[np.uint8],
        scores: NDArray[np.float32],
        plies: NDArray[np.int32],
        final_game: NDArray[np.int32],
        final_seat: NDArray[np.int32],
        final_packed: NDArray[np.uint8],
    ) -> int:
        """Gets how many games finished (and rows of ``final_*`` were written); or, where an action is not
        legal, -1 - its row, nothing being played."""
    def save(self) -> bytes: ...
    def load(self, blob: bytes) -> bool:
        """False where the bytes are no state of this batch, which is then as it was."""

LUDO_ENDINGS: tuple[str, ...]

class LudoBatch:
    """Independent games of Ludo, stepped together. All arrays are C-contiguous; the GIL is released."""

    def __init__(
        self,
        batch: int,
        seed: int,
        first_game: int,
        players: int,
        blocks: bool,
        capture_rolls: bool,
        max_plies: int,
        progress: float,
        leaving: float,
        safety: float,
        home: float,
        captures: float,
        discount: float,
        zero_sum: bool,
        keep_standing: bool,
    ) -> None:
        """``max_plies`` is 0 where nothing cuts a game off."""
    @property
    def packed_bytes(self) -> int: ...
    @property
    def observation_scale(self) -> tuple[float, ...]:
        """A factor for each byte of an observation."""
    def rows(self, seat: NDArray[np.int32], episode: NDArray[np.int32], ply: NDArray[np.int32]) -> None: ...
    def observe(self, out: NDArray[np.uint8]) -> None: ...
    def legal(self, out: NDArray[np.bool_]) -> None: ...
    def pack(self, out: NDArray[np.uint8]) -> None: ...
    def expand(
        self, packed: NDArray[np.uint8], observations: NDArray[np.uint8], legal: NDArray[np.bool_]
    ) -> int:
        """Expand packed rows of any game with these rules; gives -1, or the first row that is no possible
        position."""
    def random_actions(self, out: NDArray[np.int32]) -> None: ...
    def heuristic_actions(
        self, games: NDArray[np.int32], keys: NDArray[np.uint64], actions: NDArray[np.int32]
    ) -> None:
        """The heuristic player's action in each of these games. ``keys`` decide between equal actions."""
    def step(
        self,
        actions: NDArray[np.int32],
        rewards: NDArray[np.float32],
        terminated: NDArray[np.bool_],
        truncated: NDArray[np.bool_],
        ending: NDArray[np.uint8],
        scores: NDArray[np.float32],
        plies: NDArray[np.int32],
        final_game: NDArray[np.int32],
        final_seat: NDArray[np.int32],
        final_packed: NDArray[np.uint8],
    ) -> int:
        """As ``Batch.step``."""
    def save(self) -> bytes: ...
    def load(self, blob: bytes) -> bool:
        """False where the bytes are no state of this batch, which is then as it was."""

def expand(
    packed: NDArray[np.uint8],
    max_plies: int,
    observations: NDArray[np.uint8] | None,
    legal: NDArray[np.bool_] | None,
) -> int:
    """Expand packed positions; gives -1, or the first row that is no possible position."""

def sample(
    logits: NDArray[np.float32],
    legal: NDArray[np.bool_],
    uniforms: NDArray[np.float64],
    temperature: float,
    epsilons: NDArray[np.float32],
    actions: NDArray[np.int32],
    log_probs: NDArray[np.float32],
) -> int:
    """Draw a legal action for each row, with an epsilon each. Gives -1; or, for the first row that nothing can be drawn from, twice
    its index, and one more where its logits are not finite (rather than no action being legal)."""

def row_uniforms(
    seed: int,
    first_game: int,
    game: NDArray[np.int32],
    episode: NDArray[np.int32],
    ply: NDArray[np.int32],
    stream: int,
    seat: NDArray[np.int32],
    out: NDArray[np.float64],
) -> None:
    """``keyed_uniform(seed, first_game + game, episode, ply, stream, seat)``, without a pass for each part."""

def grab(
    packed: NDArray[np.uint8],
    keys: NDArray[np.uint64],
    actions: NDArray[np.int32],
    scores: NDArray[np.int32],
    nodes: NDArray[np.uint64],
) -> int:
    """For each packed position the action that wins the most material at once. Gives -1, or the first row that is
    no possible position or has no legal move. ``keys`` decide between equal moves."""

def search(
    packed: NDArray[np.uint8],
    depth: int,
    keys: NDArray[np.uint64],
    actions: NDArray[np.int32],
    scores: NDArray[np.int32],
    nodes: NDArray[np.uint64],
) -> int:
    """As ``grab``, by alpha-beta to a fixed depth. Scores are in pawns for the side to move; those near ``MATE``
    tell of a won game. ``nodes`` are the positions that were looked at."""

class SparseRows:
    """A matrix of which only the entries that are not 0 are kept, row by row."""

    def __init__(self, columns: NDArray[np.int32], values: NDArray[np.float32], width: int) -> None:
        """Entries of each row [rows, k] in a matrix with ``width`` columns; a negative column stands for none."""
    @staticmethod
    def gather(
        observations: NDArray[np.uint8] | NDArray[np.float32],
        places: NDArray[np.int32],
        factors: NDArray[np.float32],
    ) -> SparseRows:
        """[rows, len(places)]: what each observation holds at these places of its flat form, times a factor for each
        place."""
    @property
    def shape(self) -> tuple[int, int]: ...
    def transposed(self) -> SparseRows: ...
    def times(self, dense: NDArray[np.float32], out: NDArray[np.float32], threads: int) -> None:
        """The product with ``dense`` [columns, width] into ``out`` [rows, width]. A row of it depends on no other row,
        nor on the number of threads."""

def list_actions(legal: NDArray[np.bool_], out: NDArray[np.int32]) -> None:
    """The legal actions of each row in order, into ``out`` [rows, k]; -1 where a row has no more."""

def score(
    features: NDArray[np.float32],
    weight: NDArray[np.float32],
    bias: NDArray[np.float32],
    actions: NDArray[np.int32],
    out: NDArray[np.float32],
    threads: int,
) -> None:
    """``weight[a] · features[row] + bias[a]`` for each action a of ``actions`` [rows, k]; 0 where it is negative."""

class Linker:
    """Makes links: what came of each decision of a slab. All slabs have one size.

    A *place* is a decision: slab * steps * slots + step * slots + slot. A *position* is what a seat saw. A slab has
    (2 * steps + 1) * slots of them: at its decisions, at its end, and the last ones of truncated games. Decisions whose
    slab is gone have the places, and the positions, that follow all others.
    """

    def __init__(
        self,
        slabs: int,
        steps: int,
        games: int,
        seats: int,
        simultaneous: bool,
        n_step: int,
        discount: float,
        owner: int,
        one_chain: bool,
    ) -> None:
        """With ``one_chain``, the decisions of both seats of a game make one chain; else each seat has its own."""
    def follow(
        self,
        slab: int,
        games: bool,
        end: bool,
        acting: NDArray[np.bool_],
        seat: NDArray[np.int8],
        owner: NDArray[np.int16],
        reward: NDArray[np.float32],
        terminated: NDArray[np.bool_],
        truncated: NDArray[np.bool_],
        final_seat: NDArray[np.int8],
        rows: NDArray[np.uint8],
        count: int,
        rewards: NDArray[np.float32],
        discounts: NDArray[np.float32],
        next_positions: NDArray[np.int32],
        plies: NDArray[np.int32],
        closed: NDArray[np.int32],
    ) -> tuple[int, int]:
        """Follows the ``games`` of a table through one slab. At its ``end``, returns may go on where their chain acts.
        Closes the links whose outcome is known: writes their
        ``rewards``, ``discounts``, ``next_positions`` (-1: none) and, unless it is empty, ``plies`` by place, and lists
        them in ``closed``. The others stay open, in the first ``count`` of ``rows``. Gives how many are closed, and how
        many are open."""
    def estimate(
        self,
        rewards: NDArray[np.float32],
        discounts: NDArray[np.float32],
        next_positions: NDArray[np.int32],
        plies: NDArray[np.int32],
        values: NDArray[np.float32],
        rho: NDArray[np.float32],
        c: NDArray[np.float32],
        trace: float,
        places: NDArray[np.int32],
        advantages: NDArray[np.float32],
        returns: NDArray[np.float32],
    ) -> None:
        """Estimates ``advantages`` and ``returns`` of the decisions at ``places``, which are in order. ``values`` are by
        position. V-trace's clipped ratios ``rho`` and ``c``, one for each decision, are empty for GAE."""

class ReplaySlabs:
    """The slabs of a replay, whose places and positions are numbered as in ``Linker``."""

    def __init__(
        self, slabs: int, steps: int, games: int, seats: int, simultaneous: bool, packed_bytes: int
    ) -> None: ...
    def gather(
        self,
        addresses: NDArray[np.uint64],
        rewards: NDArray[np.float32],
        discounts: NDArray[np.float32],
        next_positions: NDArray[np.int32],
        generations: NDArray[np.int32],
        places: NDArray[np.int32],
        packed_out: NDArray[np.uint8],
        next_out: NDArray[np.uint8],
        action_out: NDArray[np.int32],
        reward_out: NDArray[np.float32],
        discount_out: NDArray[np.float32],
        generation_out: NDArray[np.int32],
    ) -> None:
        """Copies the decisions at some places. ``addresses`` [3, slabs] tell where each slab has its packed rows, its
        last positions and its actions; 0 where there is no slab."""
    def add(self, places: NDArray[np.int32], counts: NDArray[np.int32], listed: NDArray[np.int32]) -> None:
        """Adds places to the ``counts`` of their slabs, and to ``listed`` [slabs, places] unless that is empty."""
    def draw(
        self,
        seed: int,
        key: int,
        counts: NDArray[np.int32],
        listed: NDArray[np.int32],
        out: NDArray[np.int32],
    ) -> None:
        """Draws places with equal chances from the first ``counts`` of each slab in ``listed`` [slabs, places]. Draw i
        is keyed by (seed, key, i)."""

class SumTree:
    """Priorities of places, and their sums. A place is drawn with a chance proportional to its priority."""

    def __init__(self, places: int) -> None: ...
    @property
    def total(self) -> float: ...
    @property
    def nbytes(self) -> int: ...
    def set(self, places: NDArray[np.int32], priorities: NDArray[np.float32]) -> None: ...
    def clear(self, first: int, count: int) -> None:
        """Sets the priorities of neighbouring places to 0."""
    def get(self, places: NDArray[np.int32], out: NDArray[np.float32]) -> None: ...
    def draw(self, seed: int, key: int, places: NDArray[np.int32], priorities: NDArray[np.float32]) -> None:
        """Draws one place from each of len(places) equal shares of the total, with its priority. Draw i is keyed by
        (seed, key, i)."""

def cpu_features() -> list[str]: ...
