// What a side attacks as a whole. Steps are taken by all pieces at once, direction by direction; only sliders are
// asked one by one.
#pragma once

#include "bitboard_pair.h"
#include "position.h"

namespace keisei {

// Hands sets of squares to `add`, in each of which no square stands for two attackers. All of them together are the
// attacks of one side, on its own pieces too, with `occupied` in place of what stands on the board.
template <Color By, typename Add>
inline void each_attack(const Position& p, Bitboard occupied, Add add) {
    constexpr int up = By == BLACK ? -1 : 1, down = -up;
    const Pair own = as_pair(p.of(By));
    const auto of = [&](int type) { return as_pair(p.of(PieceType(type))); };
    const Pair king = of(KING), silvers = of(SILVER), dragons = of(DRAGON);
    const Pair straight = (of(GOLDS) | king | of(HORSE)) & own;  // a horse's diagonals are a bishop's
    const Pair backward_diagonal = (king | silvers | dragons) & own;
    const Pair forward_diagonal = backward_diagonal | (of(GOLDS) & own);
    const Pair knights = of(KNIGHT) & own;
    add(shifted<0, up>(straight | ((silvers | of(PAWN)) & own)));
    add(shifted<0, down>(straight));
    add(shifted<-1, 0>(straight));
    add(shifted<1, 0>(straight));
    add(shifted<-1, up>(forward_diagonal));
    add(shifted<1, up>(forward_diagonal));
    add(shifted<-1, down>(backward_diagonal));
    add(shifted<1, down>(backward_diagonal));
    add(shifted<-1, 2 * up>(knights));
    add(shifted<1, 2 * up>(knights));
    const auto slide = [&](Bitboard b) { add(Pair{b.lo, b.hi}); };
    for_each(p.of(By, LANCE), [&](int square) { slide(lance_attacks(By, square, occupied)); });
    for_each(p.of(By, BISHOP) | p.of(By, HORSE), [&](int square) { slide(bishop_attacks(square, occupied)); });
    for_each(p.of(By, ROOK) | p.of(By, DRAGON), [&](int square) { slide(rook_attacks(square, occupied)); });
}

// The squares that at least one, two and three pieces attack.
struct AttackCounts {
    Bitboard by[3];
};

template <Color By>
inline AttackCounts attack_counts(const Position& p) {
    Pair once{}, twice{}, thrice{};
    each_attack<By>(p, p.occupied(), [&](Pair b) {
        thrice |= twice & b;
        twice |= once & b;
        once |= b;
    });
    return {as_bitboard(once), as_bitboard(twice), as_bitboard(thrice)};
}

inline AttackCounts attack_counts(const Position& p, Color by) {
    return by == BLACK ? attack_counts<BLACK>(p) : attack_counts<WHITE>(p);
}

// What the side to move must mind: where its king cannot go, and who gives check.
struct Threats {
    Bitboard unsafe, checkers;
};

template <Color Us>
inline Threats threats_to(const Position& p) {
    // Through the king, which cannot flee along the line of a slider that checks it.
    const int king = p.king(Us);
    const Bitboard others = p.occupied() ^ Bitboard::of(king);
    Pair attacked{};
    each_attack<~Us>(p, others, [&](Pair b) { attacked |= b; });
    const Bitboard unsafe = as_bitboard(attacked);
    return {unsafe, unsafe.has(king) ? p.checkers() : Bitboard{}};
}

inline Threats threats(const Position& p) { return p.turn() == BLACK ? threats_to<BLACK>(p) : threats_to<WHITE>(p); }

// The same where the enemy's attacks are known: unless there is a check, no line goes through the king.
inline Threats threats(const Position& p, const AttackCounts& enemy) {
    if (enemy.by[0].has(p.king(p.turn()))) return threats(p);
    return {enemy.by[0], {}};
}

}  // namespace keisei
