// A set of squares as one vector of two words, for work on many sets at once: half the operations, and registers of
// their own. GCC and Clang have it on every processor.
#pragma once

#include <cstring>

#include "shogi/bitboard.h"

namespace keisei {

typedef u64 Pair __attribute__((vector_size(16)));

inline Pair as_pair(const Bitboard& b) {
    Pair pair;
    std::memcpy(&pair, &b, sizeof pair);
    return pair;
}
inline Bitboard as_bitboard(Pair pair) { return {pair[0], pair[1]}; }

// Every square of the set moved by so many files and ranks; those that would leave the board are dropped.
template <int Files, int Ranks>
inline Pair shifted(Pair set) {
    static_assert(Files >= -1 && Files <= 1);
    constexpr Bitboard stays = Ranks < 0 ? ranks(-Ranks, 8) : ranks(0, 8 - Ranks);
    if constexpr (Ranks != 0) set &= Pair{stays.lo, stays.hi};
    if constexpr (Ranks < 0) set >>= -Ranks;
    if constexpr (Ranks > 0) set <<= Ranks;
    // File 7 is the last of the low word, and file 8 the first of the high one.
    if constexpr (Files > 0) set = (set << 9 & Pair{LOW_BITS, HIGH_BITS}) | Pair{0, (set >> 54)[0]};
    if constexpr (Files < 0) set = set >> 9 | Pair{(set << 54)[1] & LOW_BITS, 0};
    return set;
}

}  // namespace keisei
