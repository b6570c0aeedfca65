#include "shogi/planes.h"

#include <algorithm>

#include "shogi/spread.h"

namespace keisei {
namespace {

// 81 equal bytes in three overlapping blocks: a call of memset costs more than the stores.
inline void fill(u8* out, int value) {
    u8 block[32];
    std::memset(block, value, sizeof block);
    for (const int at : {0, 32, SQUARES - 32}) std::memcpy(out + at, block, sizeof block);
}

// The codes of all pieces, as the side to move sees its board; beyond it nothing stands.
struct Codes {
    u8 at[SPREAD_BYTES];

    Codes(const Position& p, bool turned) {
        std::memcpy(at, p.board(), sizeof at);
        if (turned) std::reverse(at, at + SQUARES);
    }
};

// A plane for each kind of piece. The comparisons become vectors by themselves, and cost less than to look for pieces.
u8* write_pieces(const Codes& codes, Color side, u8* out) {
    for (int t = PAWN; t < PIECE_TYPES; ++t, out += SQUARES) {
        const u8 code = u8(make_piece(side, PieceType(t)));
        for (int i = 0; i < SPREAD_BYTES; ++i) out[i] = codes.at[i] == code;
    }
    return out;
}

template <bool Turned>
void write_board(const Position& p, const AttackCounts& enemy, u8* out) {
    constexpr Color us = Turned ? WHITE : BLACK;
    const Codes codes(p, Turned);
    out = write_pieces(codes, us, out);
    out = write_pieces(codes, ~us, out);
    for (const AttackCounts& counts : {attack_counts<us>(p), enemy})
        for (const Bitboard b : counts.by) {
            spread<Turned>(b, out);
            out += SQUARES;
        }
}

}  // namespace

void write_planes(const Position& p, const Clock& clock, const AttackCounts& enemy, int max_plies, u8* out) {
    const Color us = p.turn();
    if (us == BLACK) write_board<false>(p, enemy, out);
    else write_board<true>(p, enemy, out);

    const auto plane = [out](int index, int value) { fill(out + index * SQUARES, value); };
    for (int t = PAWN; t <= GOLD; ++t) plane(OWN_HAND + t - PAWN, p.hand(us, PieceType(t)));
    for (int t = PAWN; t <= GOLD; ++t) plane(ENEMY_HAND + t - PAWN, p.hand(~us, PieceType(t)));
    plane(IN_CHECK, enemy.by[0].has(p.king(us)));
    plane(SEEN_ONCE, clock.repetitions >= 1);
    plane(SEEN_TWICE, clock.repetitions >= 2);
    plane(PROGRESS, std::min(255, clock.ply * 255 / max_plies));
    plane(WHITE_TO_MOVE, us == WHITE);
    plane(ONES, 1);
}

}  // namespace keisei
