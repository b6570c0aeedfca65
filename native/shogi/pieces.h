// The vocabulary of Shogi: colours, pieces, squares and moves.
#pragma once

#include "types.h"

namespace keisei {

enum Color : int { BLACK, WHITE };
constexpr Color operator~(Color c) { return Color(c ^ 1); }

// The order is cshogi's and dlshogi's, so that drop labels and networks fit. Promotion adds 8.
enum PieceType : int {
    NONE, PAWN, LANCE, KNIGHT, SILVER, BISHOP, ROOK, GOLD, KING,
    PRO_PAWN, PRO_LANCE, PRO_KNIGHT, PRO_SILVER, HORSE, DRAGON
};
constexpr int PROMOTED = 8;
constexpr int PIECE_TYPES = 15;
constexpr int WHITE_PIECE = 16;
constexpr int HAND_TYPES = 7;

// How many of each kind a set has, by its unpromoted type.
constexpr int SET_COUNT[9] = {0, 18, 4, 4, 4, 2, 2, 4, 2};

// What a piece is worth on the board, in pawns; in hand it counts as unpromoted.
constexpr int PIECE_VALUE[PIECE_TYPES] = {0, 1, 3, 4, 5, 8, 10, 6, 0, 7, 6, 6, 6, 10, 12};

constexpr PieceType type_of(int piece) { return PieceType(piece & 15); }
constexpr Color color_of(int piece) { return Color(piece >> 4); }
constexpr int make_piece(Color c, PieceType t) { return t | (c << 4); }
constexpr PieceType unpromoted(PieceType t) { return t > KING ? PieceType(t - PROMOTED) : t; }
constexpr bool can_promote(PieceType t) { return t >= PAWN && t <= ROOK; }
constexpr bool moves_like_gold(PieceType t) { return t == GOLD || (t >= PRO_PAWN && t <= PRO_SILVER); }

// (file - 1) * 9 + (rank - 1): 1a is 0, 1i is 8, 9i is 80. Turning the board half round is 80 - square.
constexpr int SQUARES = 81;
constexpr int file_of(int square) { return square / 9; }
constexpr int rank_of(int square) { return square % 9; }
constexpr int seen_by(Color c, int square) { return c == BLACK ? square : 80 - square; }

// to | from << 7 | promote << 14; a drop has from = 80 + piece type.
using Move = u16;
constexpr Move NO_MOVE = 0;  // from == to == 1a: no real move
constexpr Move PROMOTE = 1 << 14;
constexpr Move board_move(int from, int to, bool promote = false) {
    return Move(to | from << 7 | (promote ? PROMOTE : 0));
}
constexpr Move drop_move(PieceType t, int to) { return Move(to | (80 + t) << 7); }
constexpr int to_of(Move m) { return m & 127; }
constexpr int from_of(Move m) { return (m >> 7) & 127; }
constexpr bool is_drop(Move m) { return from_of(m) >= SQUARES; }
constexpr PieceType dropped(Move m) { return PieceType(from_of(m) - 80); }
constexpr bool is_promotion(Move m) { return m & PROMOTE; }

constexpr int MAX_LEGAL_MOVES = 593;

}  // namespace keisei
