// Sets of squares as bytes, one for each square.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "shogi/bitboard.h"

namespace keisei {

static_assert(std::endian::native == std::endian::little, "bytes are spread by little-endian words");

constexpr int SPREAD_BYTES = 96;  // what `spread` writes: 81 squares, and 0 beyond them

// The 81 squares as one run of bits in three words of 32. For white the board is turned: the run is moved
// up to end at bit 95, and the spreaders read it backwards.
struct Bits {
    u32 word[3];

    Bits(Bitboard b, bool turned) {
        u64 low = b.lo | b.hi << 63, high = b.hi >> 1;
        if (turned) {
            high = high << 15 | low >> 49;
            low <<= 15;
        }
        word[0] = u32(low);
        word[1] = u32(low >> 32);
        word[2] = u32(high);
        if (turned) std::swap(word[0], word[2]);
    }
};

// Writes one byte, 0 or 1, for each square, and up to 15 bytes of 0 behind them. Write planes in order, so that each
// plane covers the extra bytes of the one before.
#if defined(__AVX2__)

template <bool Turned>
inline void spread(Bitboard b, u8* out) {
    const Bits bits(b, Turned);
    const __m256i source = Turned ? _mm256_setr_epi8(3, 3, 3, 3, 3, 3, 3, 3, 2, 2, 2, 2, 2, 2, 2, 2,
                                                     1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0)
                                  : _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1,
                                                     2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
    const __m256i bit = _mm256_set1_epi64x(Turned ? 0x0102040810204080 : (long long)0x8040201008040201);
    const __m256i one = _mm256_set1_epi8(1);
    for (int i = 0; i < 3; ++i) {
        const __m256i bytes = _mm256_shuffle_epi8(_mm256_set1_epi32(int(bits.word[i])), source);
        const __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit), bit);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 32 * i), _mm256_and_si256(set, one));
    }
}

#else

struct SpreadTable {
    u64 bytes[2][256];  // [turned][eight bits]
    constexpr SpreadTable() : bytes() {
        for (int byte = 0; byte < 256; ++byte)
            for (int bit = 0; bit < 8; ++bit)
                if (byte >> bit & 1) {
                    bytes[0][byte] |= u64(1) << 8 * bit;
                    bytes[1][byte] |= u64(1) << 8 * (7 - bit);
                }
    }
};
inline constexpr SpreadTable SPREAD;

template <bool Turned>
inline void spread(Bitboard b, u8* out) {
    const Bits bits(b, Turned);
    for (int i = 0; i < 11; ++i) {
        const int place = Turned ? 3 - i % 4 : i % 4;
        const u64 bytes = SPREAD.bytes[Turned][bits.word[i / 4] >> 8 * place & 255];
        std::memcpy(out + 8 * i, &bytes, 8);
    }
}

#endif

}  // namespace keisei
