// Where pieces attack. Steps come from tables; sliders from the occupied squares, with small tables or none.
#pragma once

#include "shogi/bitboard.h"

namespace keisei {

struct alignas(64) Diagonals {
    Bitboard below[2], above[2];  // the two diagonals through a square, split at it
};

struct AttackTables {
    Bitboard steps[2][PIECE_TYPES][SQUARES];  // pawn, knight, silver, gold, king by colour
    Diagonals diagonals[SQUARES];
    u16 along_file[9][128];        // [rank][the 7 inner squares of the file] -> 9 bits
    Bitboard along_rank[9][128];   // [file][the 7 inner squares of the rank] -> squares, on rank a
    Bitboard file_rays[2][SQUARES];  // lance on an empty board
    Bitboard rook_rays[SQUARES], bishop_rays[SQUARES];  // on an empty board
    u8 direction[SQUARES][SQUARES];  // 1 + the ray from one square that leads to another; 0 where none does
    Bitboard rays[8][SQUARES];

    AttackTables();
};

extern const AttackTables TABLES;

inline Bitboard steps(Color c, PieceType t, int square) { return TABLES.steps[c][t][square]; }

inline Bitboard along_file(int square, Bitboard occupied) {
    const int file = file_of(square), rank = rank_of(square);
    if (file < 7) {
        const int shift = 9 * file;
        return {u64(TABLES.along_file[rank][(occupied.lo >> (shift + 1)) & 127]) << shift, 0};
    }
    const int shift = 9 * (file - 7);
    return {0, u64(TABLES.along_file[rank][(occupied.hi >> (shift + 1)) & 127]) << shift};
}

inline Bitboard lance_attacks(Color c, int square, Bitboard occupied) {
    return along_file(square, occupied) & TABLES.file_rays[c][square];
}

inline Bitboard along_rank(int square, Bitboard occupied) {
    const int file = file_of(square), rank = rank_of(square);
    // Every ninth bit, gathered into bits 56 … 62 by one multiplication (no two products meet there).
    const u64 low = ((occupied.lo >> rank) & 0x0040201008040201) * 0x0101010101010100 >> 57;
    const u64 high = (occupied.hi >> rank) & 1;
    const Bitboard b = TABLES.along_rank[file][(low & 63) | high << 6];
    return {b.lo << rank, b.hi << rank};
}

// Obstruction difference: between the nearest blocker below and the nearest above, both included.
inline Bitboard line_attacks(Bitboard below, Bitboard above, Bitboard occupied) {
    const Bitboard lower = occupied & below, upper = occupied & above;
    const u64 hi_bit = lower.hi ? (u64(1) << 63) >> std::countl_zero(lower.hi) : 0;
    const u64 lo_bit = lower.hi ? 0 : (u64(1) << 63) >> std::countl_zero(lower.lo | 1);
    const u64 lo = upper.lo - lo_bit;
    const u64 hi = upper.hi - hi_bit - (upper.lo < lo_bit);
    return (upper ^ Bitboard{lo, hi}) & (below | above);
}

inline Bitboard bishop_attacks(int square, Bitboard occupied) {
    const Diagonals& d = TABLES.diagonals[square];
    return line_attacks(d.below[0], d.above[0], occupied) | line_attacks(d.below[1], d.above[1], occupied);
}

inline Bitboard rook_attacks(int square, Bitboard occupied) {
    return along_file(square, occupied) | along_rank(square, occupied);
}

// The squares strictly between two squares of one line; empty where they share none.
inline Bitboard between(int a, int b) {
    const int d = TABLES.direction[a][b];
    if (!d) return {};
    return and_not(TABLES.rays[d - 1][a] ^ TABLES.rays[d - 1][b], Bitboard::of(b));
}

// The whole line through two squares that share one, less the first square itself.
inline Bitboard line_through(int a, int b) {
    const int d = TABLES.direction[a][b];
    return TABLES.rays[d - 1][a] | TABLES.rays[7 - (d - 1)][a];
}

}  // namespace keisei
