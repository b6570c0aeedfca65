// What a network sees: 48 planes of 81 bytes, from the side to move (documented in docs/games/shogi.md).
#pragma once

#include "position.h"

namespace keisei {

enum Plane : int {
    OWN_PIECES = 0,        // 14: pawn … king, then the promoted ones, in the order of PieceType
    ENEMY_PIECES = 14,     // 14
    OWN_HAND = 28,         // 7 counts: pawn, lance, knight, silver, bishop, rook, gold
    ENEMY_HAND = 35,       // 7
    IN_CHECK = 42,
    SEEN_ONCE = 43,        // the position stood before in this game
    SEEN_TWICE = 44,       // … at least twice; once more ends the game
    PROGRESS = 45,         // ply / max_plies, as 0 … 255
    WHITE_TO_MOVE = 46,
    ONES = 47,             // tells the board from its padding
    PLANES = 48
};
constexpr int OBSERVATION_BYTES = PLANES * SQUARES;

void write_planes(const Position& p, const Clock& clock, bool in_check, int max_plies, u8* out);

}  // namespace keisei
