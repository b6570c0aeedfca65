"""Pictures of a Ludo board."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from keisei.games.ludo import HOME, YARD, LudoBoard, board_svg, board_text

SVG = "{http://www.w3.org/2000/svg}"
CROWD = [(0, 0, 12, HOME), (YARD, 26, 26, 51), (YARD, YARD, YARD, 5), (13, 0, 20, 20)]


def board_of(players: int) -> LudoBoard:
    return LudoBoard.from_position(CROWD[:players], (1, 6, 6))


def test_text_picture() -> None:
    board = LudoBoard.from_position([(0, 7, 7, HOME), (YARD, 26, 33, 51)], (1, 6, 6))
    assert str(board) == board_text(board)
    assert str(board).splitlines() == [
        "                   .  .  .",
        "                   . Y3  *",
        "                   *  y  .",
        "                   .  y  .          Y0",
        "                   .  y  .",
        "                   .  y  .",
        " .  *  .  .  .  .           .  .  .  *  .  .",
        " .                                         .",
        " .  .  * RY  .  .    R3     .  .  .  .  *  .",
        "                   .  r  .",
        "                   .  r  .",
        "                   .  r  .",
        "                   .  r  *",
        "                  RY  r  .",
        "                   .  .  .",
        "",
        "Red        0    7    7 home",
        "Yellow  yard   26   33   51",
        "Red to move with 1 6 6",
    ]
    crowd = LudoBoard.from_position(
        [(26, 26, 20, YARD), (13, 1, 1, 1), (0, YARD, YARD, YARD)], (1,), players=3
    )
    assert [sign for sign in ("##", "3G", "R2") if sign in str(crowd)] == ["##", "3G", "R2"]


@pytest.mark.parametrize("players", [2, 3, 4])
def test_the_text_has_every_square_once(players: int) -> None:
    lines = board_text(LudoBoard(players=players)).splitlines()[:15]
    signs = "".join(lines).replace(" ", "")
    assert signs.count(".") + signs.count("*") == 52
    assert signs.count("*") == 8
    for letter in {2: "RY", 3: "RGY", 4: "RGYB"}[players]:
        assert (signs.count(letter), signs.count(letter.lower())) == (4, 5)


@pytest.mark.parametrize("players", [2, 3, 4])
def test_svg_shows_every_token_and_die(players: int) -> None:
    board = board_of(players)
    root = ET.fromstring(board._repr_svg_())
    pieces = [group for group in root.iter(f"{SVG}g") if group.get("class") == "piece"]
    assert len(pieces) == 4 * players
    dice = [group for group in root.iter(f"{SVG}g") if group.get("class") == "dice"]
    assert [len(die.findall(f"{SVG}circle")) for die in dice] == [1, 6, 6]
    assert "href" not in board_svg(board)  # it stands alone: nothing is fetched
    assert "Red to move" in board_svg(board)
    assert "prefers-color-scheme:dark" in board_svg(board)


def test_no_two_tokens_are_drawn_at_one_place() -> None:
    root = ET.fromstring(board_svg(board_of(4)))
    middles = [
        (circle.get("cx"), circle.get("cy"))
        for circle in root.iter(f"{SVG}circle")
        if circle.get("class") == "rim"
    ]
    assert len(set(middles)) == 16


def test_a_finished_game_names_its_winner() -> None:
    board = LudoBoard.from_position([(1, 2, 3, 4), (HOME,) * 4], (2,), to_move=1)
    assert str(board).endswith("Yellow has won")
    assert "Yellow has won" in board_svg(board)
    assert 'class="dice"' not in board_svg(board)


def test_many_dice_are_counted() -> None:
    board = LudoBoard.from_position([(1, 2, 3, 4), (1, 2, 3, 4)], [1] * 12)
    assert board_svg(board).count('class="dice"') == 7
    assert "+ 5" in board_svg(board)
