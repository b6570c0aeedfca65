"""The terminal of a person. All that the command line prints goes through it."""

from __future__ import annotations

from collections.abc import Iterable
from unicodedata import category

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

__all__ = ["Terminal", "visible"]

_LAYOUT = frozenset("\n\t")


class Terminal(Console):
    """A console on which text can only be read. Runs come from others, and a control sequence in a name could clear the
    screen or fake a message."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield Segment(visible(segment.text), segment.style)


def visible(text: str) -> str:
    """Shows control sequences, and signs that change the order of letters, as text: ``\\x1b`` and ``\\u202e``. Line
    breaks and spaces of all kinds stay."""
    if text.isprintable():
        return text
    return "".join(sign if _is_harmless(sign) else _escaped(sign) for sign in text)


def _is_harmless(sign: str) -> bool:
    return sign.isprintable() or sign in _LAYOUT or category(sign) == "Zs"


def _escaped(sign: str) -> str:
    return sign.encode("unicode_escape").decode()
