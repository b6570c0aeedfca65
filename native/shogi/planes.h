// What a network sees: 54 planes of 81 bytes, from the side to move (documented in docs/games/shogi.md).
#pragma once

#include "shogi/attacked.h"

namespace keisei {

enum Plane : int {
    OWN_PIECES = 0,        // 14: pawn … king, then the promoted ones, in the order of PieceType
    ENEMY_PIECES = 14,     // 14
    OWN_ATTACKS = 28,      // 3: squares that one, two, three or more pieces of the side to move attack
    ENEMY_ATTACKS = 31,    // 3
    OWN_HAND = 34,         // 7 counts: pawn, lance, knight, silver, bishop, rook, gold
    ENEMY_HAND = 41,       // 7
    IN_CHECK = 48,
    SEEN_ONCE = 49,        // the position stood before in this game
    SEEN_TWICE = 50,       // … at least twice; once more ends the game
    PROGRESS = 51,         // ply / max_plies, as 0 … 255
    WHITE_TO_MOVE = 52,
    ONES = 53,             // tells the board from its padding
    PLANES = 54
};
constexpr int OBSERVATION_BYTES = PLANES * SQUARES;

// `enemy` are the attacks of the side that is not to move.
void write_planes(const Position& p, const Clock& clock, const AttackCounts& enemy, int max_plies, u8* out);

}  // namespace keisei
