// Two players of the core: a greedy one, and one that looks ahead. Both count material and nothing else.
#pragma once

#include "shogi/position.h"

namespace keisei {

constexpr int MATE = 1 << 20;  // the score of a won game, less one for each ply that it takes
constexpr int MAX_SEARCH_DEPTH = 32;

struct Choice {
    Move move = NO_MOVE;  // none where the side to move has no legal move
    int score = 0;        // in pawns, seen from the side to move
    u64 nodes = 0;        // positions that were looked at
};

// The move that wins the most material at once, by capture and promotion, whatever the answer.
Choice grab(Position& p, u64 key);

// The best move by negamax with alpha-beta to a fixed depth of 1 or more plies. A position without a legal move
// is lost for the side to move, at the last ply as well; any other leaf is worth its material. What came before
// (repetition) and the settings of a game (declaration, limit of plies) are not looked at.
Choice search(Position& p, int depth, u64 key);

// Both draw lots among moves of equal score, by a number that `key` gives each move.

}  // namespace keisei
