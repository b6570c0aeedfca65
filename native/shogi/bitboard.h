// A set of squares in two words: files 1-7 in the low one (63 bits), files 8-9 in the high one (18).
// No file is ever split, so that moves along a file stay within a word.
#pragma once

#include <bit>

#include "shogi/pieces.h"

namespace keisei {

struct Bitboard {
    u64 lo = 0, hi = 0;

    static constexpr Bitboard of(int square) {
        return square < 63 ? Bitboard{u64(1) << square, 0} : Bitboard{0, u64(1) << (square - 63)};
    }
    constexpr bool has(int square) const {
        return square < 63 ? (lo >> square) & 1 : (hi >> (square - 63)) & 1;
    }
    constexpr explicit operator bool() const { return (lo | hi) != 0; }
    constexpr int count() const { return std::popcount(lo) + std::popcount(hi); }
    constexpr bool more_than_one() const { return ((lo & (lo - 1)) | (hi & (hi - 1)) | (lo && hi)) != 0; }
    // The lowest square of a set that is not empty.
    constexpr int first() const { return lo ? std::countr_zero(lo) : 63 + std::countr_zero(hi); }
    constexpr int pop() {
        if (lo) {
            const int square = std::countr_zero(lo);
            lo &= lo - 1;
            return square;
        }
        const int square = 63 + std::countr_zero(hi);
        hi &= hi - 1;
        return square;
    }
    constexpr Bitboard& operator|=(Bitboard b) { lo |= b.lo; hi |= b.hi; return *this; }
    constexpr Bitboard& operator&=(Bitboard b) { lo &= b.lo; hi &= b.hi; return *this; }
    constexpr Bitboard& operator^=(Bitboard b) { lo ^= b.lo; hi ^= b.hi; return *this; }
    constexpr bool operator==(const Bitboard&) const = default;
};

constexpr u64 LOW_BITS = (u64(1) << 63) - 1;
constexpr u64 HIGH_BITS = (u64(1) << 18) - 1;
constexpr Bitboard ALL{LOW_BITS, HIGH_BITS};

constexpr Bitboard operator|(Bitboard a, Bitboard b) { return {a.lo | b.lo, a.hi | b.hi}; }
constexpr Bitboard operator&(Bitboard a, Bitboard b) { return {a.lo & b.lo, a.hi & b.hi}; }
constexpr Bitboard operator^(Bitboard a, Bitboard b) { return {a.lo ^ b.lo, a.hi ^ b.hi}; }
constexpr Bitboard operator~(Bitboard a) { return {~a.lo & LOW_BITS, ~a.hi & HIGH_BITS}; }
constexpr Bitboard and_not(Bitboard a, Bitboard b) { return {a.lo & ~b.lo, a.hi & ~b.hi}; }

constexpr Bitboard ranks(int first, int last) {  // counted from 0
    Bitboard set;
    for (int square = 0; square < SQUARES; ++square)
        if (rank_of(square) >= first && rank_of(square) <= last) set |= Bitboard::of(square);
    return set;
}
constexpr Bitboard file_set(int file) {
    return file < 7 ? Bitboard{u64(0x1ff) << 9 * file, 0} : Bitboard{0, u64(0x1ff) << 9 * (file - 7)};
}

// The nearest ranks to the enemy's edge, from each side: 1 for pawns and lances, 2 for knights, 3 to promote.
constexpr Bitboard FAR_RANKS[2][4] = {
    {Bitboard{}, ranks(0, 0), ranks(0, 1), ranks(0, 2)},
    {Bitboard{}, ranks(8, 8), ranks(7, 8), ranks(6, 8)},
};

// One step towards the enemy for every square of the set; nothing may stand on the last rank.
template <Color Us>
constexpr Bitboard forward(Bitboard b) {
    return Us == BLACK ? Bitboard{b.lo >> 1, b.hi >> 1} : Bitboard{b.lo << 1, b.hi << 1};
}

// All files in which the set has no square. Within each 9-bit file, top - b keeps the top bit just where
// b is empty; that bit is then spread downwards.
constexpr Bitboard files_without(Bitboard b) {
    constexpr Bitboard top = ranks(8, 8);
    const u64 lo = (top.lo - b.lo) & top.lo, hi = (top.hi - b.hi) & top.hi;
    return {lo | (lo - (lo >> 8)), hi | (hi - (hi >> 8))};
}

template <typename Visit>
inline void for_each(Bitboard b, Visit&& visit) {
    for (u64 w = b.lo; w; w &= w - 1) visit(std::countr_zero(w));
    for (u64 w = b.hi; w; w &= w - 1) visit(63 + std::countr_zero(w));
}

}  // namespace keisei
