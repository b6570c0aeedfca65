#include "shogi/attacks.h"

#include <initializer_list>

namespace keisei {
namespace {

struct Offset { int file, rank; };

// Opposite directions stand at i and 7 - i. Ranks grow downwards, from black's far edge to its own.
constexpr Offset RAYS[8] = {{0, -1}, {-1, 0}, {1, -1}, {-1, -1}, {1, 1}, {-1, 1}, {1, 0}, {0, 1}};

constexpr bool on_board(int file, int rank) { return file >= 0 && file < 9 && rank >= 0 && rank < 9; }

Bitboard ray(int square, Offset step) {
    Bitboard set;
    int file = file_of(square) + step.file, rank = rank_of(square) + step.rank;
    for (; on_board(file, rank); file += step.file, rank += step.rank) set |= Bitboard::of(9 * file + rank);
    return set;
}

// Steps of a black piece; white's are the same, turned half round.
Bitboard step_set(PieceType t, int square, int sign) {
    static constexpr Offset pawn[] = {{0, -1}};
    static constexpr Offset knight[] = {{-1, -2}, {1, -2}};
    static constexpr Offset silver[] = {{-1, -1}, {0, -1}, {1, -1}, {-1, 1}, {1, 1}};
    static constexpr Offset gold[] = {{-1, -1}, {0, -1}, {1, -1}, {-1, 0}, {1, 0}, {0, 1}};
    Bitboard set;
    const auto add = [&](auto& offsets) {
        for (const Offset o : offsets) {
            const int file = file_of(square) + sign * o.file, rank = rank_of(square) + sign * o.rank;
            if (on_board(file, rank)) set |= Bitboard::of(9 * file + rank);
        }
    };
    if (t == PAWN) add(pawn);
    else if (t == KNIGHT) add(knight);
    else if (t == SILVER) add(silver);
    else if (moves_like_gold(t)) add(gold);
    else if (t == KING) add(RAYS);
    return set;
}

// Squares reached along a line of nine from a place, where `occupied` tells blockers by place.
int reach_on_line(int place, int occupied) {
    int reached = 0;
    for (const int step : {-1, 1})
        for (int p = place + step; p >= 0 && p < 9; p += step) {
            reached |= 1 << p;
            if (occupied >> p & 1) break;
        }
    return reached;
}

}  // namespace

AttackTables::AttackTables() {
    for (int square = 0; square < SQUARES; ++square) {
        for (int t = PAWN; t < PIECE_TYPES; ++t) {
            steps[BLACK][t][square] = step_set(PieceType(t), square, 1);
            steps[WHITE][t][square] = step_set(PieceType(t), square, -1);
        }
        for (int d = 0; d < 8; ++d) {
            rays[d][square] = ray(square, RAYS[d]);
            for_each(rays[d][square], [&](int other) { direction[square][other] = u8(d + 1); });
        }
        file_rays[BLACK][square] = ray(square, {0, -1});
        file_rays[WHITE][square] = ray(square, {0, 1});
        // Growing files mean growing squares, so these two rays lie above the square.
        diagonals[square].above[0] = ray(square, {1, -1});
        diagonals[square].below[0] = ray(square, {-1, 1});
        diagonals[square].above[1] = ray(square, {1, 1});
        diagonals[square].below[1] = ray(square, {-1, -1});
        rook_rays[square] = ray(square, {0, -1}) | ray(square, {0, 1}) | ray(square, {1, 0}) | ray(square, {-1, 0});
        bishop_rays[square] = ray(square, {1, 1}) | ray(square, {1, -1}) | ray(square, {-1, 1}) | ray(square, {-1, -1});
    }
    for (int place = 0; place < 9; ++place)
        for (int inner = 0; inner < 128; ++inner) {
            const int reached = reach_on_line(place, inner << 1);
            along_file[place][inner] = u16(reached);
            Bitboard set;
            for (int file = 0; file < 9; ++file)
                if (reached >> file & 1) set |= Bitboard::of(9 * file);
            along_rank[place][inner] = set;
        }
}

const AttackTables TABLES;

}  // namespace keisei
