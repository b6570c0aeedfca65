// Shogi as a part of the Python module. Checks shapes; the rules are checked where they live.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <stdexcept>

#include "arrays.h"
#include "bindings.h"
#include "shogi/batch.h"
#include "shogi/search.h"

using namespace nb::literals;

namespace keisei {
namespace {

struct PositionError : std::invalid_argument {
    using std::invalid_argument::invalid_argument;
};

const u8* bytes_of(const nb::bytes& bytes, std::size_t size, const char* name) {
    if (bytes.size() != size)
        throw std::invalid_argument(std::string(name) + " has " + std::to_string(bytes.size()) + " bytes, not " +
                                    std::to_string(size));
    return reinterpret_cast<const u8*>(bytes.c_str());
}

nb::bytes to_bytes(const void* from, std::size_t size) { return nb::bytes(static_cast<const char*>(from), size); }

Position unpacked(const nb::bytes& packed, Clock& clock) {
    Position p;
    if (const char* rule = p.unpack(bytes_of(packed, PACKED_BYTES, "a packed position"), clock)) throw PositionError(rule);
    p.fill_key();
    return p;
}

// Counts in pieces of some tenths of a second, and lets Python look at signals (Ctrl-C) in between.
constexpr int UNINTERRUPTED_DEPTH = 5;

u64 interruptible_perft(Position& p, int depth) {
    if (depth <= UNINTERRUPTED_DEPTH) {
        nb::gil_scoped_release released;
        return perft(p, depth);
    }
    MoveList list;
    generate(p, p.checkers(), list);
    u64 nodes = 0;
    for (const Move m : list) {
        const int captured = p.play(m);
        nodes += interruptible_perft(p, depth - 1);
        p.undo(m, captured);
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
    return nodes;
}

// A position and the moves that led to it, as the Python Board wants it.
class PlayedPosition {
  public:
    explicit PlayedPosition(const nb::bytes& packed) {
        Clock clock;
        position_ = unpacked(packed, clock);
        start(clock.ply);
    }
    PlayedPosition(const nb::bytes& board, const nb::bytes& hands, int turn, int ply, bool strict) {
        if (turn != BLACK && turn != WHITE) throw PositionError("the turn is 0 for black or 1 for white");
        if (ply < 0 || ply > 0xffff) throw PositionError("the ply is outside 0 … 65535");
        const std::string rule = position_.set(bytes_of(board, SQUARES, "a board"), bytes_of(hands, 2 * HAND_TYPES, "hands"),
                                               Color(turn), strict ? STRICT : COMPOSED);
        if (!rule.empty()) throw PositionError(rule);
        start(ply);
    }

    const Position& position() const { return position_; }
    int ply() const { return first_ply_ + int(history_.moves().size()); }
    const History& history() const { return history_; }

    MoveList legal_moves() const {
        MoveList list;
        generate(position_, position_.checkers(), list);
        return list;
    }
    bool is_legal(int m) const {
        const MoveList list = legal_moves();
        return m == Move(m) && std::find(list.begin(), list.end(), Move(m)) != list.end();
    }
    void push(int m) {
        if (!is_legal(m)) throw std::invalid_argument("the move is not legal in this position");
        const int captured = position_.play(Move(m));
        history_.push(Move(m), captured, position_.key(), bool(position_.checkers()));
    }
    int pop() {
        if (history_.moves().empty()) throw std::out_of_range("there is no move to take back");
        const Move last = history_.moves().back();
        history_.pop(position_);
        return last;
    }
    Result ending() const {
        const Color turn = position_.turn();
        if (legal_moves().size == 0) return {NO_LEGAL_MOVES, ~turn};
        if (history_.repetitions() >= 3) return history_.fourfold(turn);
        return {};
    }
    int move_of(int action) const {
        for (const Move m : legal_moves())
            if (action_of(position_.turn(), m) == action) return m;
        throw std::invalid_argument("no legal move has action " + std::to_string(action));
    }
    u64 perft(int depth) const {
        if (depth < 0) throw std::invalid_argument("the depth is negative");
        Position p = position_;
        return interruptible_perft(p, depth);
    }
    nb::bytes pack() const {
        if (const char* rule = position_.broken_rule(STRICT)) throw PositionError(rule);
        u8 packed[PACKED_BYTES];
        position_.pack({std::min(ply(), 0xffff), std::min(history_.repetitions(), 3)}, packed);
        return to_bytes(packed, PACKED_BYTES);
    }

  private:
    void start(int ply) {
        first_ply_ = ply;
        history_.restart(position_, bool(position_.checkers()));
    }

    Position position_;
    History history_;
    int first_ply_ = 0;
};

nb::bytes hands_of(const PlayedPosition& played) {
    u8 counts[2 * HAND_TYPES];
    for (const Color c : {BLACK, WHITE})
        for (int t = PAWN; t <= GOLD; ++t) counts[7 * c + t - 1] = u8(played.position().hand(c, PieceType(t)));
    return to_bytes(counts, sizeof counts);
}

int expand(Array<const u8> packed, int max_plies, nb::object observations, nb::object legal) {
    const std::size_t rows = packed.size() / PACKED_BYTES;
    const u8* in = data(packed, rows * PACKED_BYTES, "packed");
    u8* planes = nullptr;
    bool* mask = nullptr;
    if (!observations.is_none()) {
        auto array = nb::cast<Array<u8>>(observations, false);
        planes = data(array, rows * OBSERVATION_BYTES, "observations");
    }
    if (!legal.is_none()) {
        auto array = nb::cast<Array<bool>>(legal, false);
        mask = data(array, rows * ACTIONS, "legal");
    }
    nb::gil_scoped_release released;
    for (std::size_t row = 0; row < rows; ++row) {
        Position p;
        Clock clock;
        if (p.unpack(in + row * PACKED_BYTES, clock)) return int(row);
        const AttackCounts enemy = attack_counts(p, ~p.turn());
        if (planes) write_planes(p, clock, enemy, max_plies, planes + row * OBSERVATION_BYTES);
        if (mask) {
            bool* const out = mask + row * ACTIONS;
            std::memset(out, 0, ACTIONS);
            ActionMask sink{out};
            generate(p, checkers(p, enemy), sink, enemy);
        }
    }
    return -1;
}

// A player's choice for each packed position. Returns -1, or the first row that is no position or has no legal move.
template <typename Player>
int choose(Array<const u8>& packed, Array<const u64>& keys, Array<int>& actions, Array<int>& scores, Array<u64>& nodes,
           Player player) {
    const std::size_t rows = keys.size();
    const u8* const in = data(packed, rows * PACKED_BYTES, "packed");
    const u64* const key = keys.data();
    int* const action = data(actions, rows, "actions");
    int* const score = data(scores, rows, "scores");
    u64* const looked_at = data(nodes, rows, "nodes");
    nb::gil_scoped_release released;
    for (std::size_t row = 0; row < rows; ++row) {
        Position p;
        Clock clock;
        if (p.unpack(in + row * PACKED_BYTES, clock)) return int(row);
        p.fill_key();
        const Choice choice = player(p, key[row]);
        if (choice.move == NO_MOVE) return int(row);
        action[row] = action_of(p.turn(), choice.move);
        score[row] = choice.score;
        looked_at[row] = choice.nodes;
    }
    return -1;
}

int grab_all(Array<const u8> packed, Array<const u64> keys, Array<int> actions, Array<int> scores, Array<u64> nodes) {
    return choose(packed, keys, actions, scores, nodes, grab);
}

int search_all(Array<const u8> packed, int depth, Array<const u64> keys, Array<int> actions, Array<int> scores,
               Array<u64> nodes) {
    if (depth < 1 || depth > MAX_SEARCH_DEPTH) throw std::invalid_argument("the depth is outside 1 … 32");
    return choose(packed, keys, actions, scores, nodes,
                  [depth](Position& p, u64 key) { return search(p, depth, key); });
}

// Counts are scaled by what a hand may hold in ordinary play, the progress by its largest byte.
nb::tuple plane_scales() {
    constexpr float hand[HAND_TYPES] = {1 / 4.f, 1 / 2.f, 1 / 2.f, 1 / 2.f, 1, 1, 1 / 2.f};
    nb::list list;
    for (int plane = 0; plane < PLANES; ++plane) {
        const bool in_hand = plane >= OWN_HAND && plane < IN_CHECK;
        list.append(in_hand ? hand[(plane - OWN_HAND) % HAND_TYPES] : plane == PROGRESS ? 1 / 255.f : 1.f);
    }
    return nb::tuple(list);
}

// Hands and all that comes after them have one value on all squares.
nb::tuple flat_planes() {
    nb::list list;
    for (int plane = OWN_HAND; plane < PLANES; ++plane) list.append(plane);
    return nb::tuple(list);
}

void bind_position(nb::module_& m) {
    nb::class_<PlayedPosition>(m, "PlayedPosition")
        .def(nb::init<const nb::bytes&>(), "packed"_a)
        .def_static(
            "from_pieces",
            [](const nb::bytes& board, const nb::bytes& hands, int turn, int ply, bool strict) {
                return PlayedPosition(board, hands, turn, ply, strict);
            },
            "board"_a, "hands"_a, "turn"_a, "ply"_a, "strict"_a = true)
        .def("board", [](const PlayedPosition& p) { return to_bytes(p.position().board(), SQUARES); })
        .def("hands", &hands_of)
        .def_prop_ro("turn", [](const PlayedPosition& p) { return int(p.position().turn()); })
        .def_prop_ro("ply", &PlayedPosition::ply)
        .def_prop_ro("key", [](const PlayedPosition& p) { return p.position().key(); })
        .def("legal_moves",
             [](const PlayedPosition& p) {
                 const MoveList list = p.legal_moves();
                 return std::vector<int>(list.begin(), list.end());
             })
        .def("is_legal", &PlayedPosition::is_legal, "move"_a)
        .def("push", &PlayedPosition::push, "move"_a)
        .def("pop", &PlayedPosition::pop)
        .def("history",
             [](const PlayedPosition& p) {
                 const auto& moves = p.history().moves();
                 return std::vector<int>(moves.begin(), moves.end());
             })
        .def("is_check", [](const PlayedPosition& p) { return bool(p.position().checkers()); })
        .def("can_declare_win", [](const PlayedPosition& p) { return p.position().can_declare_win(); })
        .def("repetitions", [](const PlayedPosition& p) { return p.history().repetitions(); })
        .def("ending",
             [](const PlayedPosition& p) {
                 const Result r = p.ending();
                 return nb::make_tuple(int(r.ending), r.winner);
             })
        .def("action_of",
             [](const PlayedPosition& p, int move) { return int(action_of(p.position().turn(), Move(move))); },
             "move"_a)
        .def("move_of", &PlayedPosition::move_of, "action"_a)
        .def("perft", &PlayedPosition::perft, "depth"_a)
        .def("pack", &PlayedPosition::pack)
        .def("copy", [](const PlayedPosition& p) { return PlayedPosition(p); });
}

void bind_batch(nb::module_& m) {
    nb::class_<Batch>(m, "Batch")
        .def(
            "__init__",
            [](Batch* self, int batch, u64 seed, u64 first_game, const nb::bytes& start, int max_plies, bool declaration,
               bool limit_draws, float win, float loss, float draw, float ply_cost, float material, float discount,
               bool keep_material) {
                if (batch < 1 || max_plies < 1 || max_plies > 0xffff)
                    throw std::invalid_argument("batch and max_plies must be at least 1");
                Clock clock;
                const Rewards rewards{win, loss, draw, ply_cost, material, discount, keep_material};
                const Options options{max_plies, declaration, limit_draws, rewards};
                new (self) Batch(batch, seed, first_game, unpacked(start, clock), options);
            },
            "batch"_a, "seed"_a, "first_game"_a, "start"_a, "max_plies"_a, "declaration"_a, "limit_draws"_a,
            "win"_a, "loss"_a, "draw"_a, "ply_cost"_a, "material"_a, "discount"_a, "keep_material"_a)
        .def("rows",
             [](const Batch& b, Array<int> seat, Array<int> episode, Array<int> ply) {
                 const std::size_t n = b.size();
                 b.rows(data(seat, n, "seat"), data(episode, n, "episode"), data(ply, n, "ply"));
             })
        .def("observe",
             [](const Batch& b, Array<u8> out) {
                 u8* const to = data(out, std::size_t(b.size()) * OBSERVATION_BYTES, "out");
                 nb::gil_scoped_release released;
                 b.observe(to);
             })
        .def("legal",
             [](const Batch& b, Array<bool> out) {
                 bool* const to = data(out, std::size_t(b.size()) * ACTIONS, "out");
                 nb::gil_scoped_release released;
                 b.legal(to);
             })
        .def("pack",
             [](const Batch& b, Array<u8> out) {
                 u8* const to = data(out, std::size_t(b.size()) * PACKED_BYTES, "out");
                 nb::gil_scoped_release released;
                 b.pack(to);
             })
        .def("random_actions",
             [](const Batch& b, Array<int> out) {
                 int* const to = data(out, b.size(), "out");
                 nb::gil_scoped_release released;
                 b.random_actions(to);
             })
        .def("step",
             [](Batch& b, Array<const int> actions, Array<float> rewards, Array<bool> terminated, Array<bool> truncated,
                Array<u8> ending, Array<float> scores, Array<int> plies, Array<int> final_game, Array<int> final_seat,
                Array<u8> final_packed) {
                 const std::size_t n = b.size();
                 const int* const chosen = data(actions, n, "actions");
                 const StepOutput out{data(rewards, 2 * n, "rewards"),
                                      data(terminated, n, "terminated"),
                                      data(truncated, n, "truncated"),
                                      data(ending, n, "ending"),
                                      data(scores, 2 * n, "scores"),
                                      data(plies, n, "plies"),
                                      data(final_game, n, "final_game"),
                                      data(final_seat, n, "final_seat"),
                                      data(final_packed, n * PACKED_BYTES, "final_packed")};
                 nb::gil_scoped_release released;
                 return b.step(chosen, out);
             })
        .def("save",
             [](const Batch& b) {
                 const std::string blob = b.save();
                 return nb::bytes(blob.data(), blob.size());
             })
        .def("load", [](Batch& b, const nb::bytes& blob) { return b.load(std::string(blob.c_str(), blob.size())); });
}

}  // namespace

void bind_shogi(nb::module_& m) {
    nb::exception<PositionError>(m, "PositionError", PyExc_ValueError);
    m.attr("PACKED_BYTES") = PACKED_BYTES;
    m.attr("PLANES") = int(PLANES);
    m.attr("ACTIONS") = ACTIONS;
    m.attr("ENDINGS") = names(ENDING_NAMES, std::size(ENDING_NAMES));
    m.attr("PLANE_SCALES") = plane_scales();
    m.attr("FLAT_PLANES") = flat_planes();
    m.attr("MAX_SEARCH_DEPTH") = MAX_SEARCH_DEPTH;
    m.attr("MATE") = MATE;
    bind_position(m);
    bind_batch(m);
    m.def("expand", &expand, "packed"_a, "max_plies"_a, "observations"_a.none(), "legal"_a.none());
    m.def("grab", &grab_all, "packed"_a, "keys"_a, "actions"_a, "scores"_a, "nodes"_a);
    m.def("search", &search_all, "packed"_a, "depth"_a, "keys"_a, "actions"_a, "scores"_a, "nodes"_a);
}

}  // namespace keisei
