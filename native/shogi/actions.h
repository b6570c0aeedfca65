// Moves as action numbers: 27 kinds x 81 squares, seen from the side to move.
//
// Kinds 0 … 9 are the directions up, up-left, up-right, left, right, down, down-left, down-right and the
// knight's two jumps; 10 … 19 the same with promotion; 20 … 26 drops of pawn, lance, knight, silver,
// bishop, rook and gold. The square is where the piece arrives. cshogi, dlshogi and pgx share the labels.
#pragma once

#include "shogi/pieces.h"

namespace keisei {

constexpr int DIRECTIONS = 10, ACTION_KINDS = 27;
constexpr int ACTIONS = ACTION_KINDS * SQUARES;

struct ActionTable {
    u16 action[SQUARES * SQUARES];  // [81 * from + to] without promotion, seen from the side that moves
    ActionTable();
};
extern const ActionTable ACTION_TABLE;

// Turning the board half round turns 81 * from + to into 6560 - (81 * from + to).
template <Color Us>
inline u16 board_action(int from, int to) {
    const int index = SQUARES * from + to;
    return ACTION_TABLE.action[Us == BLACK ? index : SQUARES * SQUARES - 1 - index];
}
constexpr u16 PROMOTION_ACTION = SQUARES * DIRECTIONS;

template <Color Us>
constexpr u16 drop_action(PieceType t, int to) {
    return u16(SQUARES * (2 * DIRECTIONS + t - PAWN) + seen_by(Us, to));
}

template <Color Us>
inline u16 action_of(Move m) {
    if (is_drop(m)) return drop_action<Us>(dropped(m), to_of(m));
    return u16(board_action<Us>(from_of(m), to_of(m)) + (is_promotion(m) ? PROMOTION_ACTION : 0));
}

inline u16 action_of(Color turn, Move m) { return turn == BLACK ? action_of<BLACK>(m) : action_of<WHITE>(m); }

}  // namespace keisei
