// One position: the pieces on the board and in hand, and whose turn it is.
#pragma once

#include <cstring>
#include <string>

#include "shogi/attacks.h"
#include "shogi/bitboard_pair.h"

namespace keisei {

constexpr int PACKED_BYTES = 64;
constexpr int OCCUPIED = 0, GOLDS = 15;  // sets in `by_type` beside the piece types

// What a packed position remembers beside the position itself.
struct Clock {
    int ply = 0;          // 0 … 65535
    int repetitions = 0;  // how often the position stood before in its game: 0 … 3
};

// Composed positions may hold more pieces than one set has, and pieces that can never move again; what
// the move generator cannot bear (no king, nifu, a pawn on the last rank) is refused there too.
enum Rules { STRICT, COMPOSED };

class Position {
  public:
    // Built from 81 piece codes and two hands of 7 counts. Returns the rule that is broken, or "".
    std::string set(const u8* board, const u8* hands, Color turn, Rules rules = STRICT);
    const char* broken_rule(Rules rules) const;

    const u8* board() const { return board_; }  // 96 bytes, of which 81 are squares
    int piece(int square) const { return board_[square]; }
    int hand(Color c, PieceType t) const { return hand_[c][t]; }
    bool has_hand(Color c) const;
    Color turn() const { return turn_; }
    int king(Color c) const { return king_[c]; }
    u64 key() const { return key_; }
    Bitboard occupied() const { return by_type_[OCCUPIED]; }
    Bitboard of(Color c) const { return by_color_[c]; }
    Bitboard of(PieceType t) const { return by_type_[t]; }
    Bitboard of(Color c, PieceType t) const { return by_color_[c] & by_type_[t]; }
    Pair pair_of(Color c) const { return as_pair(by_color_[c]); }
    Pair pair_of(int type) const { return as_pair(by_type_[type]); }
    Bitboard golds(Color c) const { return by_color_[c] & by_type_[GOLDS]; }

    // The pieces of one side that attack a square, with `occupied` in place of what stands on the board.
    Bitboard attackers(Color by, int square, Bitboard occupied) const;
    bool attacked(Color by, int square, Bitboard occupied) const;
    Bitboard checkers() const { return attackers(~turn_, king_[turn_], occupied()); }
    // The pieces of the side to move that a slider pins to their king.
    Bitboard pinned() const;

    // Plays a pseudo-legal move and returns the piece that it took (0 for none). Pass it to `undo`.
    int play(Move m);
    void undo(Move m, int captured);

    // The 27-point rule (CSA): may the side to move, which is not in check, declare a win?
    bool can_declare_win() const;
    // Black's material less white's, in pawns, promoted pieces at their higher value.
    int material() const;

    void pack(const Clock& clock, u8* out) const;
    // Returns the rule that is broken, or nullptr. A position that breaks one is left unusable. What is
    // unpacked can generate moves and be seen; `fill_key` makes it ready to play them.
    const char* unpack(const u8* in, Clock& clock);
    void fill_key();

  private:
    void clear();
    void put(int square, int piece);
    void remove(int square, int piece);
    void add_to_hand(Color c, PieceType t, int count);

    Bitboard by_type_[16];
    Bitboard by_color_[2];
    u8 board_[96];  // a code for each square, and none beyond them: read as whole vectors
    u8 hand_[2][HAND_TYPES + 1];
    u8 king_[2];
    Color turn_;
    u64 key_;
};

struct ZobristKeys {
    u64 piece[32][SQUARES];
    u64 hand[2][HAND_TYPES + 1][19];
    u64 turn;
    ZobristKeys();
};
extern const ZobristKeys ZOBRIST;

inline void Position::put(int square, int piece) {
    const Bitboard b = Bitboard::of(square);
    const PieceType t = type_of(piece);
    by_type_[OCCUPIED] ^= b;
    by_type_[t] ^= b;
    by_color_[color_of(piece)] ^= b;
    if (moves_like_gold(t)) by_type_[GOLDS] ^= b;
    board_[square] = u8(piece);
    key_ ^= ZOBRIST.piece[piece][square];
}

inline void Position::remove(int square, int piece) {
    put(square, piece);
    board_[square] = NONE;
}

inline void Position::add_to_hand(Color c, PieceType t, int count) {
    key_ ^= ZOBRIST.hand[c][t][hand_[c][t]];
    hand_[c][t] = u8(hand_[c][t] + count);
    key_ ^= ZOBRIST.hand[c][t][hand_[c][t]];
}

inline bool Position::has_hand(Color c) const {
    u64 counts;
    std::memcpy(&counts, hand_[c], 8);
    return counts != 0;
}

inline int Position::play(Move m) {
    const int to = to_of(m);
    int captured = NONE;
    if (is_drop(m)) {
        add_to_hand(turn_, dropped(m), -1);
        put(to, make_piece(turn_, dropped(m)));
    } else {
        const int from = from_of(m), piece = board_[from];
        captured = board_[to];
        if (captured) {
            remove(to, captured);
            add_to_hand(turn_, unpromoted(type_of(captured)), 1);
        }
        remove(from, piece);
        put(to, is_promotion(m) ? piece + PROMOTED : piece);
        if (type_of(piece) == KING) king_[turn_] = u8(to);
    }
    turn_ = ~turn_;
    key_ ^= ZOBRIST.turn;
    return captured;
}

inline void Position::undo(Move m, int captured) {
    turn_ = ~turn_;
    key_ ^= ZOBRIST.turn;
    const int to = to_of(m), moved = board_[to];
    remove(to, moved);
    if (is_drop(m)) {
        add_to_hand(turn_, dropped(m), 1);
        return;
    }
    const int piece = is_promotion(m) ? moved - PROMOTED : moved;
    put(from_of(m), piece);
    if (captured) {
        put(to, captured);
        add_to_hand(turn_, unpromoted(type_of(captured)), -1);
    }
    if (type_of(piece) == KING) king_[turn_] = u8(from_of(m));
}

inline Bitboard Position::attackers(Color by, int square, Bitboard occupied) const {
    const Color view = ~by;  // a piece attacks a square just where the turned piece would attack back
    const Bitboard kingly = by_type_[KING] | by_type_[HORSE] | by_type_[DRAGON];
    Bitboard found = (steps(view, PAWN, square) & by_type_[PAWN]) | (steps(view, KNIGHT, square) & by_type_[KNIGHT]) |
                     (steps(view, SILVER, square) & by_type_[SILVER]) | (steps(view, GOLD, square) & by_type_[GOLDS]) |
                     (steps(view, KING, square) & kingly);
    const Bitboard diagonal = by_type_[BISHOP] | by_type_[HORSE];
    if (TABLES.bishop_rays[square] & diagonal & by_color_[by]) found |= bishop_attacks(square, occupied) & diagonal;
    const Bitboard straight = by_type_[ROOK] | by_type_[DRAGON];
    const Bitboard lances = TABLES.file_rays[view][square] & by_type_[LANCE];
    if (((TABLES.rook_rays[square] & straight) | lances) & by_color_[by]) {
        const Bitboard vertical = along_file(square, occupied);
        found |= (vertical | along_rank(square, occupied)) & straight;
        found |= vertical & lances;
    }
    return found & by_color_[by];
}

inline bool Position::attacked(Color by, int square, Bitboard occupied) const {
    return bool(attackers(by, square, occupied));
}

inline Bitboard Position::pinned() const {
    const Color us = turn_, them = ~us;
    const int king = king_[us];
    Bitboard snipers = (TABLES.rook_rays[king] & (by_type_[ROOK] | by_type_[DRAGON])) |
                       (TABLES.bishop_rays[king] & (by_type_[BISHOP] | by_type_[HORSE])) |
                       (TABLES.file_rays[us][king] & by_type_[LANCE]);
    snipers &= by_color_[them];
    Bitboard found;
    for_each(snipers, [&](int sniper) {
        const Bitboard blockers = between(king, sniper) & occupied();
        if (blockers && !blockers.more_than_one()) found |= blockers & by_color_[us];
    });
    return found;
}

}  // namespace keisei
