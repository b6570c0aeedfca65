#include "shogi/search.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "shogi/movegen.h"
#include "randomness.h"

namespace keisei {
namespace {

constexpr int INFINITE = MATE + 1;

// What a move adds to the mover's lead in material: a capture counts twice, for it is lost and won.
int gain_of(const Position& p, Move m) {
    if (is_drop(m)) return 0;
    const PieceType taken = type_of(p.piece(to_of(m))), moved = type_of(p.piece(from_of(m)));
    const int promotion = is_promotion(m) ? PIECE_VALUE[moved + PROMOTED] - PIECE_VALUE[moved] : 0;
    return PIECE_VALUE[taken] + PIECE_VALUE[unpromoted(taken)] + promotion;
}

// Captures of the best pieces by the least ones come first. 0 for a move that wins nothing.
int promise_of(const Position& p, Move m) {
    const int gain = gain_of(p, m);
    return gain == 0 ? 0 : 16 * gain + 15 - PIECE_VALUE[type_of(p.piece(from_of(m)))];
}

template <Color Us>
bool has_free_pawn(const Position& p) {
    return bool(and_not(forward<Us>(and_not(p.of(Us, PAWN), p.pinned())), p.of(Us)));
}

// Is there a legal move? A pawn nearly always has one, so pawns are tried first.
bool can_move(const Position& p) {
    const Bitboard checkers = p.checkers();
    if (!checkers && (p.turn() == BLACK ? has_free_pawn<BLACK>(p) : has_free_pawn<WHITE>(p))) return true;
    MoveCount count;
    generate(p, checkers, count);
    return count.size > 0;
}

int lead(const Position& p) { return p.turn() == BLACK ? p.material() : -p.material(); }

class Searcher {
  public:
    explicit Searcher(Position& p) : p_(p) {}

    // The score of the position, seen from the side to move; exact between alpha and beta, and a bound on the far
    // side of the one that it oversteps. `material` is the mover's lead.
    int negamax(int depth, int ply, int material, int alpha, int beta) {
        ++nodes_;
        if (depth == 0) return can_move(p_) ? material : ply - MATE;
        MoveList list;
        generate(p_, p_.checkers(), list);
        if (list.size == 0) return ply - MATE;
        order(list, killers_[ply]);
        int best = -INFINITE;
        for (const Move m : list) {
            const int gain = gain_of(p_, m), after = material + gain;
            // The last move wins its material at the least, so one that is too good need not be played.
            if (depth == 1 && after >= beta) return after;
            const int score = try_move(m, depth, ply, after, std::max(alpha, best), beta);
            best = std::max(best, score);
            if (best < beta) continue;
            if (gain == 0) killers_[ply] = m;
            break;
        }
        return best;
    }

    int try_move(Move m, int depth, int ply, int material_after, int alpha, int beta) {
        const int captured = p_.play(m);
        const int score = -negamax(depth - 1, ply + 1, -material_after, -beta, -alpha);
        p_.undo(m, captured);
        return score;
    }

    u64 nodes() const { return nodes_; }

  private:
    // Moves that win material, then the quiet move that refuted a sister position, then the rest as they come.
    void order(MoveList& list, Move killer) const {
        u32 loud[MAX_LEGAL_MOVES];
        int louds = 0, quiets = 0;
        bool killer_is_legal = false;
        for (int i = 0; i < list.size; ++i) {
            const Move m = list.moves[i];
            const int promise = promise_of(p_, m);
            if (promise) loud[louds++] = u32(promise) << 16 | m;
            else if (m == killer) killer_is_legal = true;
            else list.moves[quiets++] = m;
        }
        std::sort(loud, loud + louds, std::greater<>());
        const int first = louds + killer_is_legal;
        std::copy_backward(list.moves, list.moves + quiets, list.moves + first + quiets);
        if (killer_is_legal) list.moves[louds] = killer;
        for (int i = 0; i < louds; ++i) list.moves[i] = Move(loud[i]);
    }

    Position& p_;
    u64 nodes_ = 0;
    Move killers_[MAX_SEARCH_DEPTH + 1] = {};
};

struct RootMove {
    Move move;
    int promise;
    u64 lot;  // decides between moves of one score
};

std::vector<RootMove> root_moves(const Position& p, u64 key) {
    MoveList list;
    generate(p, p.checkers(), list);
    std::vector<RootMove> moves;
    moves.reserve(list.size);
    for (const Move m : list) moves.push_back({m, promise_of(p, m), keyed_word({key, m})});
    return moves;
}

}  // namespace

Choice grab(Position& p, u64 key) {
    Choice choice;
    u64 best_lot = 0;
    for (const RootMove& root : root_moves(p, key)) {
        const int gain = gain_of(p, root.move);
        const bool better = gain > choice.score || (gain == choice.score && root.lot > best_lot);
        if (choice.move != NO_MOVE && !better) continue;
        choice.move = root.move;
        choice.score = gain;
        best_lot = root.lot;
    }
    choice.score += lead(p);
    return choice;
}

// The lots are part of the search: a move that would lose the draw against the best so far must beat it, one that
// would win need only match it. Among quiet moves the highest lot comes first, so this costs next to nothing.
Choice search(Position& p, int depth, u64 key) {
    std::vector<RootMove> moves = root_moves(p, key);
    std::sort(moves.begin(), moves.end(), [](const RootMove& a, const RootMove& b) {
        return a.promise != b.promise ? a.promise > b.promise : a.lot > b.lot;
    });
    Searcher searcher(p);
    Choice choice{NO_MOVE, -INFINITE};
    u64 best_lot = 0;
    const int material = lead(p);
    for (const RootMove& root : moves) {
        const int to_beat = choice.move != NO_MOVE && root.lot > best_lot ? choice.score - 1 : choice.score;
        const int after = material + gain_of(p, root.move);
        const int score = searcher.try_move(root.move, depth, 0, after, to_beat, INFINITE);
        if (score <= to_beat) continue;
        choice.move = root.move;
        choice.score = score;
        best_lot = root.lot;
    }
    choice.nodes = searcher.nodes();
    return choice;
}

}  // namespace keisei
