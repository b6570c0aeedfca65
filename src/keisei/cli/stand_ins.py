"""What is written instead of characters that a terminal cannot show, most of all one that shows ASCII alone."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["plain"]

_SIGNS = {
    "–": "-", "—": "-", "−": "-", "…": "...", "·": "|", "×": "x", "→": "->", "←": "<-", "≤": "<=", "≥": ">=",
    "≈": "~", "±": "+/-", "µ": "u", "∞": "inf", "✓": "+", "½": "1/2", "━": "-", "─": "-", "│": "|", "█": "#",
}  # fmt: skip
_WORDS = {
    "後手の持駒": "White's hand", "先手の持駒": "Black's hand", "後手番": "White to move", "先手番": "Black to move",
    "なし": "nothing", "：": ": ", "先手": "Sente", "後手": "Gote",
}  # fmt: skip
_PIECES = {
    "歩": "P ", "香": "L ", "桂": "N ", "銀": "S ", "角": "B ", "飛": "R ", "金": "G ", "玉": "K ",
    "と": "+P", "杏": "+L", "圭": "+N", "全": "+S", "馬": "+B", "龍": "+R", "・": ". ",
}  # fmt: skip
"""On a board, a wide character becomes two letters, so that the columns stay below each other."""
_FILES = {wide: f"{digit} " for digit, wide in enumerate("０１２３４５６７８９")}
_NUMBERS = {kanji: str(digit) for digit, kanji in enumerate("〇一二三四五六七八九十")}
_TEENS = {f"十{kanji}": f"1{digit}" for kanji, digit in _NUMBERS.items()}

_STAND_INS = {**_TEENS, **_WORDS, **_SIGNS, **_PIECES, **_FILES, **_NUMBERS}
"""Longer texts come before their own beginnings."""
_KNOWN = re.compile("|".join(map(re.escape, _STAND_INS)))


def plain(text: str) -> str:
    """Writes a text in ASCII: by stand-ins, by the letters that characters are made of, or by question marks."""
    known = _KNOWN.sub(lambda found: _STAND_INS[found[0]], text)
    letters = (sign for sign in unicodedata.normalize("NFKD", known) if not unicodedata.combining(sign))
    return "".join(letters).encode("ascii", "replace").decode()
