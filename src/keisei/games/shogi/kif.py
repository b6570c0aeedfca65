"""KIF, the Japanese record format: ``loads``/``load`` read it, ``dumps``/``dump`` write it.

    手合割：平手
    先手：Ada
    後手：Ben
    手数----指手---------消費時間--
       1 ７六歩(77)   ( 0:16/00:00:16)
       2 ３四歩(33)   ( 0:02/00:00:02)
       3 投了

Only the main line is read: variations (変化) come after it and are left out.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from keisei.errors import IllegalMoveError, InvalidMoveError, InvalidPositionError, NotationError
from keisei.games.shogi.board import Board, Outcome, Termination
from keisei.games.shogi.moves import BLACK, WHITE, Color, Move, PieceType, square_at, square_file, square_rank
from keisei.games.shogi.picture import KANJI, KANJI_DIGITS, WIDE_DIGITS, diagram, hand_text, kanji_number
from keisei.games.shogi.record import (
    GameRecord,
    RecordBuilder,
    at_line,
    check_header_key,
    decode,
    ending,
    lines_of,
    rule_broken,
    write_text,
)
from keisei.games.shogi.sfen import HANDICAPS, MAX_MOVE_NUMBER, Setup, parse_sfen

_HANDICAP_OF_SFEN = {sfen: name for name, sfen in HANDICAPS.items()}

_HEADER_KEYS = {
    "棋戦": "EVENT",
    "場所": "SITE",
    "開始日時": "START_TIME",
    "終了日時": "END_TIME",
    "持ち時間": "TIME_LIMIT",
    "戦型": "OPENING",
}
_KIF_KEYS = {csa: kif for kif, csa in _HEADER_KEYS.items()}

_PLAYERS = {"先手": BLACK, "下手": BLACK, "後手": WHITE, "上手": WHITE}

LONG_NAMES = {PieceType.PRO_LANCE: "成香", PieceType.PRO_KNIGHT: "成桂", PieceType.PRO_SILVER: "成銀"}
TYPE_OF_KANJI = (
    {sign: kind for kind, sign in KANJI.items()}
    | {name: kind for kind, name in LONG_NAMES.items()}
    | {"王": PieceType.KING, "竜": PieceType.DRAGON}
)

_ENDINGS = {
    "投了": Termination.RESIGNATION,
    "中断": Termination.INTERRUPTED,
    "千日手": Termination.REPETITION,
    "詰み": Termination.NO_LEGAL_MOVES,
    "切れ負け": Termination.TIME_UP,
    "入玉勝ち": Termination.DECLARATION,
    "持将棋": Termination.IMPASSE,
    "最大手数": Termination.MAX_PLIES,
}
_WORD_OF_ENDING = {termination: word for word, termination in _ENDINGS.items()}
_WIN_BY_RULE, _LOSS_BY_RULE = "反則勝ち", "反則負け"

_ASCII_DIGITS = str.maketrans("０１２３４５６７８９", "0123456789")
_SIGNS = "|".join(sorted(TYPE_OF_KANJI, key=len, reverse=True))
_MOVE_LINE = re.compile(r"\s*([0-9]{1,5})\s+(\S.*)")
_MOVE = re.compile(
    rf"(?:同|([1-9])([1-9一二三四五六七八九]))\s*({_SIGNS})(不成|成|打)?\s*(?:\(([0-9])([0-9])\))?(.*)"
)
_TIME = re.compile(r"\s*\(\s*(?:([0-9]{1,4}):)?([0-9]{1,5}):([0-9]{1,2})\s*(?:/.*)?\).*")
_CELL = re.compile(rf"\s*([vVｖ]?)(・|{_SIGNS})")
_HAND_ITEM = re.compile(r"([飛角金銀桂香歩])([一二三四五六七八九十]+|[0-9]{1,2})?\s*")
_COUNTS = {word(count): count for count in range(1, 19) for word in (kanji_number, str)}
_RESULT = re.compile(
    r"\s*まで、?\s*[0-9]{1,5}手で"
    r"(?:([先後上下]手)の(入玉勝ち|反則勝ち|反則負け|勝ち)|(千日手|持将棋|中断|詰み))?"
)
_IGNORED = re.compile(r"\s*$|#|&|\s*手数-|\+-|\s*9\s*8\s*7\s*6\s*5\s*4\s*3\s*2\s*1\s*$|盤面回転")


def loads(data: str | bytes) -> GameRecord:
    """Reads a game from text, or from the bytes of a file in UTF-8 or Shift-JIS."""
    reader = _Reader()
    number = 0
    for number, line in enumerate(lines_of(decode(data)), start=1):
        if line.startswith("変化"):
            break
        with at_line(number):
            reader.read(line)
    with at_line(number):
        return reader.finish()


def load(path: str | os.PathLike[str]) -> GameRecord:
    """Reads a game from a .kif or .kifu file."""
    return loads(Path(path).read_bytes())


def dump(record: GameRecord, path: str | os.PathLike[str], encoding: str | None = None) -> None:
    """Writes a game to a file. By convention .kif is Shift-JIS and .kifu is UTF-8, with Windows line ends."""
    target = Path(path)
    if encoding is None:
        encoding = "cp932" if target.suffix.lower() == ".kif" else "utf-8"
    write_text(target, dumps(record).replace("\n", "\r\n"), encoding)


class _Reader:
    """Reads a file line by line. The position is complete when the first move comes."""

    def __init__(self) -> None:
        self.found = RecordBuilder()
        self.handicap = "平手"
        self.rows: list[list[int]] = []
        self.hands = bytearray(14)
        self.turn: Color | None = None
        self.ply = 0
        self.last_number: int | None = None
        self.recognised = False

    def read(self, line: str) -> None:
        if line.startswith("*"):
            self.found.comment(line[1:])
            return
        plain = line.translate(_ASCII_DIGITS)
        if _IGNORED.match(plain):
            return
        if match := _MOVE_LINE.fullmatch(plain):
            self._move_line(int(match[1]), match[2])
        elif match := _RESULT.match(plain):
            self._result_line(match)
        elif "：" in line:
            self._header(*line.split("：", 1))
        elif plain.startswith("|"):
            self._needs_no_moves("a row of the board")
            self.rows.append(_parse_row(plain))
        elif plain.strip() in ("先手番", "下手番", "後手番", "上手番"):
            self._needs_no_moves("the side to move")
            self.turn = _PLAYERS[plain.strip()[:2]]
        elif match := re.match(r"手数[＝=]\s*([0-9]{1,5})", plain):
            self._needs_no_moves("the move number")
            self.ply = min(int(match[1]), MAX_MOVE_NUMBER - 1)
        else:
            raise NotationError(f"{line[:60]!r} is neither a header, a board, a move nor a comment of KIF")
        self.recognised = True

    def finish(self) -> GameRecord:
        if not self.recognised:
            raise NotationError("the text holds no KIF: no header, no board and no move")
        self._board()
        return self.found.record()

    def _needs_no_moves(self, what: str) -> None:
        if self.found.board is not None:
            raise NotationError(f"{what} stands after the first move")

    def _header(self, key: str, value: str) -> None:
        key, value = key.strip(), value.strip()
        if key in _PLAYERS:
            self.found.names[_PLAYERS[key]] = value
        elif key.endswith("の持駒") and key[:-3] in _PLAYERS:
            self._needs_no_moves("a hand")
            start = 7 * _PLAYERS[key[:-3]]
            self.hands[start : start + 7] = _parse_hand(value.translate(_ASCII_DIGITS))
        elif key == "手合割":
            self._needs_no_moves("the handicap")
            if value not in HANDICAPS and value != "その他":
                known = " ".join(HANDICAPS)
                raise InvalidPositionError(f"unknown handicap {value[:60]!r}; known are {known} and その他")
            self.handicap = value
        else:
            check_header_key(key)
            self.found.headers[_HEADER_KEYS.get(key, key)] = value

    def _board(self) -> Board:
        """The current board. It is made from the header when it is first used."""
        return self.found.board or self.found.begin(Board.from_setup(self._setup()))

    def _setup(self) -> Setup:
        if not self.rows:
            if self.handicap == "その他":
                raise InvalidPositionError("手合割 is その他, so the board must be drawn, and is not")
            return parse_sfen(HANDICAPS[self.handicap])
        if len(self.rows) != 9:
            raise InvalidPositionError(f"a board has 9 rows between '|' and '|'; got {len(self.rows)}")
        board = bytearray(81)
        for rank, row in enumerate(self.rows, start=1):
            for file, code in zip(range(9, 0, -1), row, strict=True):
                board[square_at(file, rank)] = code
        return Setup(bytes(board), bytes(self.hands), self.turn or BLACK, self.ply)

    def _move_line(self, number: int, text: str) -> None:
        board = self._board()
        if self.last_number is not None and number != self.last_number + 1:
            raise NotationError(
                f"move {number} follows move {self.last_number}; a line is missing or doubled"
            )
        self.last_number = number
        if outcome := _parse_ending(text, board):
            if self.found.outcome is not None:
                raise NotationError("the game ends twice")
            self.found.outcome = outcome
            return
        self.found.push(*_parse_move(text, board))

    def _result_line(self, match: re.Match[str]) -> None:
        """``まで3手で先手の勝ち`` repeats the result. It counts only if no ending was listed."""
        if self.found.outcome is None:
            self.found.outcome = _parse_result(match, self._board())


def _parse_row(line: str) -> list[int]:
    end = line.rfind("|")
    cells, position = [], 1
    while match := _CELL.match(line, position, max(end, 1)):
        code = 0 if match[2] == "・" else TYPE_OF_KANJI[match[2]] + (16 if match[1] else 0)
        cells.append(code)
        position = match.end()
    if len(cells) != 9 or line[position:end].strip():
        raise InvalidPositionError(f"a row of the board has 9 squares between '|' and '|'; got {line[:60]!r}")
    return cells


def _parse_hand(text: str) -> bytes:
    counts = bytearray(7)
    position = 0
    while text != "なし" and position < len(text):
        match = _HAND_ITEM.match(text, position)
        count = _COUNTS.get(match[2] or "1") if match else None
        if match is None or count is None:
            raise InvalidPositionError(
                f"a hand is written like '飛　角二　歩十'; got {text[position : position + 60]!r}"
            )
        slot = TYPE_OF_KANJI[match[1]] - 1
        if counts[slot]:
            raise InvalidPositionError(f"the hand names {match[1]} twice")
        counts[slot] = count
        position = match.end()
    return bytes(counts)


def _parse_ending(text: str, board: Board) -> Outcome | None:
    word = re.split(r"[\s(]", text, maxsplit=1)[0]
    if word in _ENDINGS:
        return ending(_ENDINGS[word], board.turn)
    if word == _WIN_BY_RULE:
        return rule_broken(board, board.turn)
    return rule_broken(board, board.turn.opponent) if word == _LOSS_BY_RULE else None


def _parse_result(match: re.Match[str], board: Board) -> Outcome | None:
    side, how, plain = match.groups()
    if plain is not None:
        return ending(_ENDINGS[plain], board.turn)
    if side is None:
        return None
    player = _PLAYERS[side]
    if how == _LOSS_BY_RULE:
        return rule_broken(board, player.opponent)
    if how == _WIN_BY_RULE:
        return rule_broken(board, player)
    if (player is board.turn) != (how == "入玉勝ち"):
        raise NotationError(
            f"{match[0].strip()!r} cannot be: {board.turn.name.lower()} is to move at the end"
        )
    if how == "入玉勝ち":
        return ending(Termination.DECLARATION, board.turn)
    return ending(Termination.RESIGNATION if board.legal_moves else Termination.NO_LEGAL_MOVES, board.turn)


def _parse_move(text: str, board: Board) -> tuple[Move, int | None]:
    """Reads a move and its time from ``７六歩(77) ( 0:16/00:00:16)``, with full-width digits converted."""
    match = _MOVE.fullmatch(text)
    if match is None:
        raise InvalidMoveError(f"{text[:60]!r} is no KIF move; it is written like '７六歩(77)' or '５五歩打'")
    file, rank, sign, suffix, from_file, from_rank, rest = match.groups()
    target = _target(text, file, rank, board)
    kind, origin = TYPE_OF_KANJI[sign], (from_file or "") + (from_rank or "")
    if suffix == "打" or origin == "00":
        if not PieceType.PAWN <= kind <= PieceType.GOLD or origin not in ("", "00"):
            raise InvalidMoveError(f"{text[:60]!r} is no drop; one is written like '５五歩打'")
        return Move(None, target, drop=kind), _seconds(rest)
    if "0" in origin or not origin:
        raise InvalidMoveError(f"{text[:60]!r} lacks the square it starts from, like (77), or 打 for a drop")
    start = square_at(int(origin[0]), int(origin[1]))
    if start == target:
        raise InvalidMoveError(
            f"{text[:60]!r} stays on its square: ({origin}) is where the {sign} comes from, as in '３四歩(33)'"
        )
    piece = board.piece_at(start)
    if piece is not None and piece.type is not kind:
        raise IllegalMoveError(f"{text[:60]!r} moves {sign}, but {KANJI[piece.type]} stands on {origin}")
    return Move(start, target, promotion=suffix == "成"), _seconds(rest)


def _target(text: str, file: str | None, rank: str | None, board: Board) -> int:
    if file is None or rank is None:
        last = board.peek()
        if last is None:
            raise InvalidMoveError(
                f"{text[:60]!r} says 同 (the square of the last move), but no move came before"
            )
        return last.to_square
    return square_at(int(file), int(rank) if rank.isascii() else KANJI_DIGITS.index(rank))


def _seconds(text: str) -> int | None:
    match = _TIME.fullmatch(text)
    return None if match is None else int(match[1] or 0) * 3600 + int(match[2]) * 60 + int(match[3])


def dumps(record: GameRecord) -> str:
    """Writes a game as KIF."""
    handicap = _HANDICAP_OF_SFEN.get(record.start)
    even = handicap in (None, "平手")
    black, white = ("先手", "後手") if even else ("下手", "上手")
    lines = [f"{_KIF_KEYS.get(key, key)}：{value}" for key, value in record.headers.items()]
    lines += [f"手合割：{handicap}"] if handicap else _diagram_lines(parse_sfen(record.start))
    lines += [
        f"{black}：{record.names[BLACK]}",
        f"{white}：{record.names[WHITE]}",
        "手数----指手---------消費時間--",
    ]
    lines += _move_lines(record)
    if record.outcome is not None:
        turn = record.last_turn
        lines.append(f"{len(record.moves) + 1:4} {_ending_word(record.outcome, turn)}")
        lines.append(f"まで{len(record.moves)}手で{_result_words(record.outcome, turn, (black, white))}")
    return "\n".join(lines) + "\n"


def _diagram_lines(setup: Setup) -> list[str]:
    hands = {color: hand_text(setup, color) for color in Color}
    lines = [f"後手の持駒：{hands[WHITE]}", *diagram(setup), f"先手の持駒：{hands[BLACK]}"]
    lines += ["後手番"] if setup.turn is WHITE else []
    return lines + ([f"手数＝{setup.ply}"] if setup.ply else [])


def _comment_lines(record: GameRecord, played: int) -> list[str]:
    text = record.comments.get(played)
    return [] if text is None else ["*" + line for line in text.split("\n")]


def _move_lines(record: GameRecord) -> list[str]:
    lines = _comment_lines(record, 0)
    totals = [0, 0]
    boards = record.boards()
    for number, move in enumerate(record.moves, start=1):
        board = next(boards)
        text = f"{number:4} {kif_move(board, move)}"
        time = record.seconds[number - 1] if record.seconds else None
        if time is not None:
            totals[board.turn] += time
            total = totals[board.turn]
            whole = f"{total // 3600:02}:{total // 60 % 60:02}:{total % 60:02}"
            text += f"   ({time // 60:2}:{time % 60:02}/{whole})"
        lines += [text, *_comment_lines(record, number)]
    return lines


def kif_move(board: Board, move: Move) -> str:
    """Writes a move as in ``７六歩(77)``. The board has not played it yet."""
    last = board.peek()
    if last is not None and last.to_square == move.to_square:
        target = "同　"
    else:
        target = WIDE_DIGITS[square_file(move.to_square)] + KANJI_DIGITS[square_rank(move.to_square)]
    if move.drop is not None:
        return f"{target}{KANJI[move.drop]}打"
    assert move.from_square is not None
    piece = board.piece_at(move.from_square)
    if piece is None:
        raise IllegalMoveError(f"{move} starts from an empty square")
    name = LONG_NAMES.get(piece.type, KANJI[piece.type])
    origin = f"({square_file(move.from_square)}{square_rank(move.from_square)})"
    return f"{target}{name}{'成' if move.promotion else ''}{origin}"


def _ending_word(outcome: Outcome, turn: Color) -> str:
    if outcome.termination in (Termination.ILLEGAL_MOVE, Termination.PERPETUAL_CHECK):
        return _WIN_BY_RULE if outcome.winner is turn else _LOSS_BY_RULE
    return _WORD_OF_ENDING[outcome.termination]


def _result_words(outcome: Outcome, turn: Color, sides: tuple[str, str]) -> str:
    if outcome.winner is None:
        return _ending_word(outcome, turn)
    word = _ending_word(outcome, turn)
    if word == _LOSS_BY_RULE:
        return f"{sides[turn]}の{word}"
    return f"{sides[outcome.winner]}の{word if word in (_WIN_BY_RULE, '入玉勝ち') else '勝ち'}"
