// All squares that a side attacks. Steps are computed for all pieces at once, direction by direction; sliders are
// computed one by one.
#pragma once

#include "shogi/position.h"

namespace keisei {

// Hands sets of squares to `add`, in each of which no square stands for two attackers. All of them together are the
// attacks of one side, on its own pieces too.
template <Color By, typename Add>
inline void each_attack(const Position& p, Add add) {
    const Bitboard occupied = p.occupied();
    constexpr int up = By == BLACK ? -1 : 1, down = -up;
    const Pair own = p.pair_of(By);
    const auto of = [&](int type) { return p.pair_of(type); };
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
    each_attack<By>(p, [&](Pair b) {
        thrice |= twice & b;
        twice |= once & b;
        once |= b;
    });
    return {as_bitboard(once), as_bitboard(twice), as_bitboard(thrice)};
}

inline AttackCounts attack_counts(const Position& p, Color by) {
    return by == BLACK ? attack_counts<BLACK>(p) : attack_counts<WHITE>(p);
}

// The pieces that give check, where the enemy's attacks are known.
inline Bitboard checkers(const Position& p, const AttackCounts& enemy) {
    return enemy.by[0].has(p.king(p.turn())) ? p.checkers() : Bitboard{};
}

}  // namespace keisei
