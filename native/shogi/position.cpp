#include "shogi/position.h"

#include "randomness.h"
#include "shogi/spread.h"

namespace keisei {
namespace {

// The packed form slices the piece codes into bits: five sets of squares whose bits, read together,
// give each square's code (type, and 16 for white). Words 0-4 hold the low parts of the sets, words 5
// and 6 their high parts of 18 bits (three and two), word 7 the hands, the turn and the clock.
constexpr int HAND_BITS[HAND_TYPES + 1] = {0, 5, 3, 3, 3, 2, 2, 3};
constexpr int TURN_SHIFT = 42, REPETITIONS_SHIFT = 43, PLY_SHIFT = 45, SPARE_SHIFT = 61;

}  // namespace

ZobristKeys::ZobristKeys() {
    u64 counter = 0;
    const auto next = [&] { return mix(u64(0x4b6569736569) + ++counter * GOLDEN); };
    for (auto& squares : piece)
        for (u64& word : squares) word = next();
    for (auto& types : hand)
        for (auto& counts : types)
            for (u64& word : counts) word = next();
    turn = next();
}

const ZobristKeys ZOBRIST;

void Position::clear() {
    for (Bitboard& b : by_type_) b = {};
    for (Bitboard& b : by_color_) b = {};
    std::memset(board_, 0, sizeof board_);
    std::memset(hand_, 0, sizeof hand_);
    king_[BLACK] = king_[WHITE] = 0;
    turn_ = BLACK;
    key_ = 0;
}

const char* Position::broken_rule(Rules rules) const {
    for (const Color c : {BLACK, WHITE})
        if (of(c, KING).count() != 1)
            return c == BLACK ? "black must have exactly one king" : "white must have exactly one king";
    static const char* too_many[9] = {nullptr, "there are more than 18 pawns", "there are more than 4 lances",
        "there are more than 4 knights", "there are more than 4 silvers", "there are more than 2 bishops",
        "there are more than 2 rooks", "there are more than 4 golds", nullptr};
    for (int t = PAWN; t <= GOLD; ++t) {
        int count = by_type_[t].count() + hand_[BLACK][t] + hand_[WHITE][t];
        if (t != GOLD) count += by_type_[t + PROMOTED].count();
        if (count > (rules == STRICT ? SET_COUNT[t] : SET_COUNT[PAWN])) return too_many[t];
    }
    for (const Color c : {BLACK, WHITE}) {
        if (of(c, PAWN) & FAR_RANKS[c][1]) return "a pawn on the last rank could never move";
        for (int file = 0; file < 9; ++file)
            if ((of(c, PAWN) & file_set(file)).more_than_one())
                return "two unpromoted pawns of one side stand on one file (nifu)";
        if (rules != STRICT) continue;
        if (of(c, LANCE) & FAR_RANKS[c][1]) return "a lance on the last rank could never move";
        if (of(c, KNIGHT) & FAR_RANKS[c][2]) return "a knight on the last two ranks could never move";
    }
    if (attacked(turn_, king_[~turn_], occupied())) return "the side that is not to move is in check";
    return nullptr;
}

std::string Position::set(const u8* board, const u8* hands, Color turn, Rules rules) {
    clear();
    for (int square = 0; square < SQUARES; ++square) {
        const int piece = board[square];
        if (piece == NONE) continue;
        if (piece >= 32 || type_of(piece) == NONE || type_of(piece) >= PIECE_TYPES)
            return "piece code " + std::to_string(piece) + " on square " + std::to_string(square) + " is no piece";
        put(square, piece);
        if (type_of(piece) == KING) king_[color_of(piece)] = u8(square);
    }
    for (const Color c : {BLACK, WHITE})
        for (int t = PAWN; t <= GOLD; ++t) {
            const int count = hands[7 * c + t - 1];
            if (count > SET_COUNT[PAWN]) return "a hand holds " + std::to_string(count) + " pieces of one kind";
            key_ ^= ZOBRIST.hand[c][t][hand_[c][t] = u8(count)];
        }
    turn_ = turn;
    if (turn == WHITE) key_ ^= ZOBRIST.turn;
    const char* rule = broken_rule(rules);
    return rule ? rule : "";
}

bool Position::can_declare_win() const {
    const Bitboard zone = FAR_RANKS[turn_][3];
    if (!zone.has(king_[turn_]) || checkers()) return false;
    const Bitboard inside = and_not(of(turn_) & zone, by_type_[KING]);
    if (inside.count() < 10) return false;
    const Bitboard big = by_type_[ROOK] | by_type_[BISHOP] | by_type_[DRAGON] | by_type_[HORSE];
    int points = inside.count() + 4 * (inside & big).count();
    for (int t = PAWN; t <= GOLD; ++t) points += hand_[turn_][t] * (t == BISHOP || t == ROOK ? 5 : 1);
    return points >= (turn_ == BLACK ? 28 : 27);
}

int Position::material() const {
    int sum = 0;
    for (int t = PAWN; t < PIECE_TYPES; ++t)
        sum += PIECE_VALUE[t] * (of(BLACK, PieceType(t)).count() - of(WHITE, PieceType(t)).count());
    for (int t = PAWN; t <= GOLD; ++t) sum += PIECE_VALUE[t] * (hand_[BLACK][t] - hand_[WHITE][t]);
    return sum;
}

void Position::pack(const Clock& clock, u8* out) const {
    Bitboard slice[5] = {{}, {}, {}, {}, by_color_[WHITE]};
    for (int t = PAWN; t < PIECE_TYPES; ++t)
        for (int bit = 0; bit < 4; ++bit)
            if (t >> bit & 1) slice[bit] |= by_type_[t];
    u64 word[8];
    for (int i = 0; i < 5; ++i) word[i] = slice[i].lo;
    word[5] = slice[0].hi | slice[1].hi << 18 | slice[2].hi << 36;
    word[6] = slice[3].hi | slice[4].hi << 18;
    word[7] = 0;
    int shift = 0;
    for (const Color c : {BLACK, WHITE})
        for (int t = PAWN; t <= GOLD; ++t) {
            word[7] |= u64(hand_[c][t]) << shift;
            shift += HAND_BITS[t];
        }
    word[7] |= u64(turn_) << TURN_SHIFT | u64(clock.repetitions) << REPETITIONS_SHIFT | u64(clock.ply) << PLY_SHIFT;
    std::memcpy(out, word, PACKED_BYTES);
}

const char* Position::unpack(const u8* in, Clock& clock) {
    u64 word[8];
    std::memcpy(word, in, PACKED_BYTES);
    Bitboard slice[5];
    for (int i = 0; i < 5; ++i) {
        const u64 high = i < 3 ? word[5] >> 18 * i : word[6] >> 18 * (i - 3);
        slice[i] = {word[i], high & HIGH_BITS};
        if (word[i] > LOW_BITS) return "unused bits are set";
    }
    if (word[5] >> 54 || word[6] >> 36 || word[7] >> SPARE_SHIFT) return "unused bits are set";

    clear();
    for (int t = PAWN; t < PIECE_TYPES; ++t) {
        Bitboard b = ALL;
        for (int bit = 0; bit < 4; ++bit) b = t >> bit & 1 ? b & slice[bit] : and_not(b, slice[bit]);
        by_type_[t] = b;
        by_type_[OCCUPIED] |= b;
        if (moves_like_gold(PieceType(t))) by_type_[GOLDS] |= b;
    }
    by_color_[WHITE] = slice[4];
    by_color_[BLACK] = and_not(by_type_[OCCUPIED], slice[4]);
    // Code 15 is no piece, and white may own nothing where no piece stands.
    if ((slice[0] & slice[1] & slice[2] & slice[3]) || and_not(slice[4], by_type_[OCCUPIED]))
        return "a piece code is no piece";

    for (int i = 0; i < 5; ++i) {
        u8 bit[SPREAD_BYTES] = {};
        spread<false>(slice[i], bit);
        for (int at = 0; at < SPREAD_BYTES; ++at) board_[at] = u8(board_[at] | bit[at] << i);
    }

    int shift = 0;
    for (const Color c : {BLACK, WHITE})
        for (int t = PAWN; t <= GOLD; ++t) {
            const int count = int(word[7] >> shift) & ((1 << HAND_BITS[t]) - 1);
            if (count > SET_COUNT[t]) return "a hand holds more pieces of a kind than a set has";
            hand_[c][t] = u8(count);
            shift += HAND_BITS[t];
        }
    turn_ = Color(word[7] >> TURN_SHIFT & 1);
    clock.repetitions = int(word[7] >> REPETITIONS_SHIFT & 3);
    clock.ply = int(word[7] >> PLY_SHIFT & 0xffff);
    for (const Color c : {BLACK, WHITE})
        if (of(c, KING)) king_[c] = u8(of(c, KING).first());
    return broken_rule(STRICT);
}

void Position::fill_key() {
    key_ = turn_ == WHITE ? ZOBRIST.turn : 0;
    for_each(occupied(), [&](int square) { key_ ^= ZOBRIST.piece[board_[square]][square]; });
    for (const Color c : {BLACK, WHITE})
        for (int t = PAWN; t <= GOLD; ++t) key_ ^= ZOBRIST.hand[c][t][hand_[c][t]];
}

}  // namespace keisei
