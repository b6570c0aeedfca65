// Generates exactly the legal moves. A sink takes them: a list, a count, or a mask.
#pragma once

#include "shogi/actions.h"
#include "shogi/attacked.h"

namespace keisei {

// What a pawn's move adds to its square.
template <Color Us>
constexpr int PAWN_STEP = Us == BLACK ? -1 : 1;

struct MoveList {
    int size = 0;
    Move moves[4096];  // a set of pieces has 593 at the most; composed positions may have more

    template <Color>
    void board_moves(int from, Bitboard to, bool promote) {
        const Move base = board_move(from, 0, promote);
        for_each(to, [&](int square) { moves[size++] = Move(base | square); });
    }
    template <Color Us>
    void pawn_moves(Bitboard to, bool promote) {
        for_each(to, [&](int square) { moves[size++] = board_move(square - PAWN_STEP<Us>, square, promote); });
    }
    template <Color>
    void drops(PieceType t, Bitboard to) {
        const Move base = drop_move(t, 0);
        for_each(to, [&](int square) { moves[size++] = Move(base | square); });
    }
    const Move* begin() const { return moves; }
    const Move* end() const { return moves + size; }
};

struct MoveCount {
    int size = 0;

    template <Color>
    void board_moves(int, Bitboard to, bool) { size += to.count(); }
    template <Color>
    void pawn_moves(Bitboard to, bool) { size += to.count(); }
    template <Color>
    void drops(PieceType, Bitboard to) { size += to.count(); }
};

constexpr int WRITE_AHEAD = 4;

// Calls write(i, square) for the i-th square of a set, and returns how many there are. It writes four at a time, and so
// up to four more than there are, with any squares. A processor cannot predict how many squares a piece reaches, and a
// loop whose end it did not predict costs more than a few writes that later ones cover.
template <typename Write>
inline int write_squares(Bitboard set, Write write) {
    int at = 0;
#if defined(__POPCNT__)
    for (u64 word = set.lo; word; at += WRITE_AHEAD)
        for (int i = 0; i < WRITE_AHEAD; ++i, word &= word - 1) write(at + i, std::countr_zero(word));
    const int low = std::popcount(set.lo);
    at = low;
    for (u64 word = set.hi; word; at += WRITE_AHEAD)
        for (int i = 0; i < WRITE_AHEAD; ++i, word &= word - 1) write(at + i, 63 + (std::countr_zero(word) & 31));
    return low + std::popcount(set.hi);
#else
    for_each(set, [&](int square) { write(at++, square); });  // to count them would cost more than it saves
    return at;
#endif
}

// Moves with their action numbers, written where the caller keeps them, with room for WRITE_AHEAD more.
struct ActionList {
    Move* moves;
    u16* actions;
    int size = 0;

    ActionList(Move* moves, u16* actions) : moves(moves), actions(actions) {}

    template <Color Us>
    void board_moves(int from, Bitboard to, bool promote) {
        const Move base = board_move(from, 0, promote);
        const u16 extra = promote ? PROMOTION_ACTION : 0;
        add(to, [&](int square) { return Move(base | square); },
            [&](int square) { return u16(board_action<Us>(from, square) + extra); });
    }
    template <Color Us>
    void pawn_moves(Bitboard to, bool promote) {
        const u16 extra = promote ? PROMOTION_ACTION : 0;  // a pawn moves in direction 0
        add(to, [&](int square) { return board_move(square - PAWN_STEP<Us>, square, promote); },
            [&](int square) { return u16(seen_by(Us, square) + extra); });
    }
    // Most pieces may be dropped on the same squares, which are then listed once.
    template <Color Us>
    void drops(PieceType t, Bitboard to) {
        if (to != listed_) {
            count_ = write_squares(to, [&](int i, int square) { squares_[i] = u16(square); });
            listed_ = to;
        }
        const Move base = drop_move(t, 0);
        const u16 first = drop_action<Us>(t, 0);
        for (int i = 0; i < count_; ++i) moves[size + i] = Move(base | squares_[i]);
        for (int i = 0; i < count_; ++i) actions[size + i] = u16(Us == BLACK ? first + squares_[i] : first - squares_[i]);
        size += count_;
    }

  private:
    template <typename MoveTo, typename ActionTo>
    void add(Bitboard to, MoveTo move_to, ActionTo action_to) {
        size += write_squares(to, [&](int i, int square) {
            moves[size + i] = move_to(square);
            actions[size + i] = action_to(square);
        });
    }

    Bitboard listed_;
    int count_ = 0;
    u16 squares_[SQUARES + WRITE_AHEAD];
};

// A mask of all actions, of which those that are legal become true.
struct ActionMask {
    bool* mask;

    template <Color Us>
    void board_moves(int from, Bitboard to, bool promote) {
        bool* const kind = mask + (promote ? PROMOTION_ACTION : 0);
        for_each(to, [&](int square) { kind[board_action<Us>(from, square)] = true; });
    }
    template <Color Us>
    void pawn_moves(Bitboard to, bool promote) {
        bool* const kind = mask + (promote ? PROMOTION_ACTION : 0);
        for_each(to, [&](int square) { kind[seen_by(Us, square)] = true; });
    }
    template <Color Us>
    void drops(PieceType t, Bitboard to) {
        for_each(to, [&](int square) { mask[drop_action<Us>(t, square)] = true; });
    }
};

// Would this pawn, dropped in front of the enemy king, be mate? (uchifuzume)
template <Color Us>
bool is_pawn_drop_mate(const Position& p, int square) {
    constexpr Color Them = ~Us;
    const int king = p.king(Them);
    const Bitboard pawn = Bitboard::of(square), occupied = p.occupied() | pawn;
    Bitboard takers = and_not(p.attackers(Them, square, occupied), Bitboard::of(king));
    while (takers) {
        // The piece that takes leaves its square; is its king safe then?
        const int from = takers.pop();
        if (!p.attacked(Us, king, occupied ^ Bitboard::of(from))) return false;
    }
    Bitboard flights = and_not(steps(Them, KING, king), p.of(Them));
    while (flights)
        if (!p.attacked(Us, flights.pop(), occupied ^ Bitboard::of(king))) return false;
    return true;
}

// `Enemy` is what is known of the enemy's attacks: AttackCounts, or nothing (Unknown).
struct Unknown {};

template <Color Us, typename Sink, typename Enemy>
class Generator {
  public:
    Generator(const Position& p, Bitboard checkers, Sink& sink, const Enemy& enemy)
        : p_(p), checkers_(checkers), sink_(sink), enemy_(enemy) {}

    void run() {
        king_moves();
        if (checkers_.more_than_one()) return;
        Bitboard target = ALL, free = ~p_.occupied();
        if (checkers_) {
            const Bitboard gap = between(p_.king(Us), checkers_.first());
            target = gap | checkers_;
            free &= gap;
        }
        piece_moves(and_not(target, p_.of(Us)));
        if (p_.has_hand(Us) && free) drops(free);
    }

  private:
    static constexpr Color Them = ~Us;
    static constexpr Bitboard ZONE = FAR_RANKS[Us][3];

    void king_moves() {
        const int king = p_.king(Us);
        const Bitboard reached = and_not(steps(Us, KING, king), p_.of(Us));
        // A checked king cannot flee along the line of a slider, which its attacks do not show.
        sink_.template board_moves<Us>(king, checkers_ ? asked(reached) : safe(reached, enemy_), false);
    }
    Bitboard safe(Bitboard squares, const AttackCounts& enemy) const { return and_not(squares, enemy.by[0]); }
    Bitboard safe(Bitboard squares, Unknown) const { return asked(squares); }

    // The squares that nobody attacks, asked one by one.
    Bitboard asked(Bitboard squares) const {
        const Bitboard others = p_.occupied() ^ Bitboard::of(p_.king(Us));
        Bitboard free;
        for_each(squares, [&](int to) {
            if (!p_.attacked(Them, to, others)) free |= Bitboard::of(to);
        });
        return free;
    }

    void piece_moves(Bitboard target) {
        target_ = target;
        pinned_ = p_.pinned();
        const Bitboard occupied = p_.occupied();
        pawns();
        each<LANCE>([&](int from) { return lance_attacks(Us, from, occupied); });
        each<KNIGHT>([&](int from) { return steps(Us, KNIGHT, from); });
        each<SILVER>([&](int from) { return steps(Us, SILVER, from); });
        each<BISHOP>([&](int from) { return bishop_attacks(from, occupied); });
        each<ROOK>([&](int from) { return rook_attacks(from, occupied); });
        each_of(p_.golds(Us), [&](int from, Bitboard to) { sink_.template board_moves<Us>(from, to, false); },
                [&](int from) { return steps(Us, GOLD, from); });
        each_of(p_.of(Us, HORSE), [&](int from, Bitboard to) { sink_.template board_moves<Us>(from, to, false); },
                [&](int from) { return bishop_attacks(from, occupied) | steps(Us, KING, from); });
        each_of(p_.of(Us, DRAGON), [&](int from, Bitboard to) { sink_.template board_moves<Us>(from, to, false); },
                [&](int from) { return rook_attacks(from, occupied) | steps(Us, KING, from); });
    }

    // A pawn moves along its file, so a pin holds it only where it comes from elsewhere.
    void pawns() {
        const Bitboard movable = p_.of(Us, PAWN) & (~pinned_ | file_set(file_of(p_.king(Us))));
        const Bitboard to = forward<Us>(movable) & target_;
        sink_.template pawn_moves<Us>(and_not(to, FAR_RANKS[Us][1]), false);
        sink_.template pawn_moves<Us>(to & ZONE, true);
    }

    template <PieceType T, typename Attacks>
    void each(Attacks attacks) {
        constexpr Bitboard dead_end = T == LANCE ? FAR_RANKS[Us][1] : T == KNIGHT ? FAR_RANKS[Us][2] : Bitboard{};
        const auto emit = [&](int from, Bitboard to) {
            sink_.template board_moves<Us>(from, and_not(to, dead_end), false);
            sink_.template board_moves<Us>(from, ZONE.has(from) ? to : to & ZONE, true);
        };
        each_of(p_.of(Us, T), emit, attacks);
    }

    template <typename Emit, typename Attacks>
    void each_of(Bitboard pieces, Emit emit, Attacks attacks) {
        for_each(pieces, [&](int from) {
            Bitboard to = attacks(from) & target_;
            if (pinned_.has(from)) to &= line_through(p_.king(Us), from);
            emit(from, to);
        });
    }

    void drops(Bitboard free) {
        if (p_.hand(Us, PAWN)) {
            Bitboard to = and_not(free & files_without(p_.of(Us, PAWN)), FAR_RANKS[Us][1]);
            const Bitboard check = steps(Them, PAWN, p_.king(Them)) & to;
            if (check && is_pawn_drop_mate<Us>(p_, check.first())) to ^= check;
            sink_.template drops<Us>(PAWN, to);
        }
        if (p_.hand(Us, LANCE)) sink_.template drops<Us>(LANCE, and_not(free, FAR_RANKS[Us][1]));
        if (p_.hand(Us, KNIGHT)) sink_.template drops<Us>(KNIGHT, and_not(free, FAR_RANKS[Us][2]));
        for (const PieceType t : {SILVER, BISHOP, ROOK, GOLD})
            if (p_.hand(Us, t)) sink_.template drops<Us>(t, free);
    }

    const Position& p_;
    const Bitboard checkers_;
    Sink& sink_;
    const Enemy& enemy_;
    Bitboard target_, pinned_;
};

template <typename Sink, typename Enemy = Unknown>
void generate(const Position& p, Bitboard checkers, Sink& sink, const Enemy& enemy = {}) {
    if (p.turn() == BLACK) Generator<BLACK, Sink, Enemy>(p, checkers, sink, enemy).run();
    else Generator<WHITE, Sink, Enemy>(p, checkers, sink, enemy).run();
}

inline u64 perft(Position& p, int depth) {
    if (depth == 0) return 1;
    if (depth == 1) {
        MoveCount count;
        generate(p, p.checkers(), count);
        return u64(count.size);
    }
    MoveList list;
    generate(p, p.checkers(), list);
    u64 nodes = 0;
    for (const Move m : list) {
        const int captured = p.play(m);
        nodes += perft(p, depth - 1);
        p.undo(m, captured);
    }
    return nodes;
}

}  // namespace keisei
