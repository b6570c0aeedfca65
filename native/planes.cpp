#include "planes.h"

#include <algorithm>
#include <bit>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace keisei {
namespace {

static_assert(std::endian::native == std::endian::little, "bytes are spread by little-endian words");

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

// Writes one byte for each square, and up to 15 bytes beyond them: the caller writes planes in order, so
// that the next plane covers what ran over.
#if defined(__AVX2__)

template <bool Turned>
void spread(Bitboard b, u8* out) {
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
constexpr SpreadTable SPREAD;

template <bool Turned>
void spread(Bitboard b, u8* out) {
    const Bits bits(b, Turned);
    for (int i = 0; i < 11; ++i) {
        const int place = Turned ? 3 - i % 4 : i % 4;
        const u64 bytes = SPREAD.bytes[Turned][bits.word[i / 4] >> 8 * place & 255];
        std::memcpy(out + 8 * i, &bytes, 8);
    }
}

#endif

// 81 equal bytes in three overlapping blocks: a call of memset costs more than the stores.
inline void fill(u8* out, int value) {
    u8 block[32];
    std::memset(block, value, sizeof block);
    for (const int at : {0, 32, SQUARES - 32}) std::memcpy(out + at, block, sizeof block);
}

// The squares that at least one, two and three pieces of a side attack, its own pieces' squares included.
struct Attacked {
    Bitboard by[3];

    void add(Bitboard b) {
        by[2] |= by[1] & b;
        by[1] |= by[0] & b;
        by[0] |= b;
    }
};

template <Color Us>
Attacked attacked_by(const Position& p) {
    const Bitboard occupied = p.occupied();
    Attacked found;
    const auto each = [&found](Bitboard pieces, auto attacks) {
        for_each(pieces, [&](int square) { found.add(attacks(square)); });
    };
    found.add(forward<Us>(p.of(Us, PAWN)));  // all at once: no two pawns of a side attack the same square
    each(p.of(Us, LANCE), [&](int square) { return lance_attacks(Us, square, occupied); });
    each(p.of(Us, KNIGHT), [](int square) { return steps(Us, KNIGHT, square); });
    each(p.of(Us, SILVER), [](int square) { return steps(Us, SILVER, square); });
    each(p.of(Us, BISHOP), [&](int square) { return bishop_attacks(square, occupied); });
    each(p.of(Us, ROOK), [&](int square) { return rook_attacks(square, occupied); });
    each(p.golds(Us), [](int square) { return steps(Us, GOLD, square); });
    each(p.of(Us, HORSE), [&](int square) { return bishop_attacks(square, occupied) | steps(Us, KING, square); });
    each(p.of(Us, DRAGON), [&](int square) { return rook_attacks(square, occupied) | steps(Us, KING, square); });
    found.add(steps(Us, KING, p.king(Us)));
    return found;
}

template <bool Turned>
void write_board(const Position& p, u8* out) {
    constexpr Color us = Turned ? WHITE : BLACK;
    for (const Color c : {us, ~us})
        for (int t = PAWN; t < PIECE_TYPES; ++t, out += SQUARES) spread<Turned>(p.of(c, PieceType(t)), out);
    for (const Attacked& attacked : {attacked_by<us>(p), attacked_by<~us>(p)})
        for (const Bitboard b : attacked.by) {
            spread<Turned>(b, out);
            out += SQUARES;
        }
}

}  // namespace

void write_planes(const Position& p, const Clock& clock, bool in_check, int max_plies, u8* out) {
    const Color us = p.turn();
    if (us == BLACK) write_board<false>(p, out);
    else write_board<true>(p, out);

    const auto plane = [out](int index, int value) { fill(out + index * SQUARES, value); };
    for (int t = PAWN; t <= GOLD; ++t) plane(OWN_HAND + t - PAWN, p.hand(us, PieceType(t)));
    for (int t = PAWN; t <= GOLD; ++t) plane(ENEMY_HAND + t - PAWN, p.hand(~us, PieceType(t)));
    plane(IN_CHECK, in_check);
    plane(SEEN_ONCE, clock.repetitions >= 1);
    plane(SEEN_TWICE, clock.repetitions >= 2);
    plane(PROGRESS, std::min(255, clock.ply * 255 / max_plies));
    plane(WHITE_TO_MOVE, us == WHITE);
    plane(ONES, 1);
}

}  // namespace keisei
