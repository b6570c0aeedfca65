// The core as a Python module. Checks shapes; the rules are checked where they live.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <stdexcept>
#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#endif

#include "arrays.h"
#include "batch.h"
#include "gather.h"
#include "ludo_bindings.h"
#include "randomness.h"
#include "replay_bindings.h"
#include "sampling.h"
#include "search.h"

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

// One position and the moves that led to it, as the Python Board wants it.
class Line {
  public:
    explicit Line(const nb::bytes& packed) {
        Clock clock;
        position_ = unpacked(packed, clock);
        start(clock.ply);
    }
    Line(const nb::bytes& board, const nb::bytes& hands, int turn, int ply, bool strict) {
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

nb::bytes hands_of(const Line& line) {
    u8 counts[2 * HAND_TYPES];
    for (const Color c : {BLACK, WHITE})
        for (int t = PAWN; t <= GOLD; ++t) counts[7 * c + t - 1] = u8(line.position().hand(c, PieceType(t)));
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

// Gives -1, or 2 * row + fault - 1 of the first row that nothing can be drawn from.
int sample(Array<const float> logits, Array<const bool> legal, Array<const double> uniforms, float temperature,
           Array<const float> epsilons, Array<int> actions, Array<float> log_probs) {
    const std::size_t rows = uniforms.size(), count = rows ? logits.size() / rows : 0;
    const float* const scores = data(logits, rows * count, "logits");
    const bool* const mask = data(legal, rows * count, "legal");
    const double* const drawn = uniforms.data();
    const float* const epsilon = data(epsilons, rows, "epsilons");
    int* const action = data(actions, rows, "actions");
    float* const log_prob = data(log_probs, rows, "log_probs");
    nb::gil_scoped_release released;
    for (std::size_t row = 0; row < rows; ++row) {
        const std::size_t at = row * count;
        const RowFault fault = sample_row(scores + at, mask + at, int(count), drawn[row],
                                          {temperature, epsilon[row]}, action[row], log_prob[row]);
        if (fault != NO_FAULT) return int(2 * row) + fault - 1;
    }
    return -1;
}

// One number in [0, 1) for each decision row, keyed as in keisei/games/randomness.py.
void row_uniforms(u64 seed, u64 first_game, Array<const int> game, Array<const int> episode, Array<const int> ply,
                  u64 stream, Array<const int> seat, Array<double> out) {
    const std::size_t rows = out.size();
    const int *games = data(game, rows, "game"), *episodes = data(episode, rows, "episode");
    const int *plies = data(ply, rows, "ply"), *seats = data(seat, rows, "seat");
    double* const to = out.data();
    for (std::size_t i = 0; i < rows; ++i)
        to[i] = to_uniform(keyed_word({seed, first_game + u64(games[i]), u64(episodes[i]), u64(plies[i]), stream,
                                       u64(seats[i])}));
}

// A player's choice for each packed position. Gives -1, or the first row that is no position or has no legal move.
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

// Those of the instruction sets that builds of the core are made for which this processor has.
nb::list cpu_features() {
    nb::list found;
#if defined(__x86_64__) && defined(__GNUC__)
    if (__builtin_cpu_supports("avx2")) found.append("avx2");  // where the system saves its registers, too
    if (__builtin_cpu_supports("bmi")) found.append("bmi1");
    if (__builtin_cpu_supports("bmi2")) found.append("bmi2");
    if (__builtin_cpu_supports("popcnt")) found.append("popcnt");
    // Not all compilers know this name. Without it, lzcnt runs as bsr and gives another number, and nothing fails.
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid(0x80000001, &a, &b, &c, &d) && (c & 1u << 5)) found.append("lzcnt");
#endif
    return found;
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
    nb::class_<Line>(m, "Position")
        .def(nb::init<const nb::bytes&>(), "packed"_a)
        .def_static(
            "from_pieces",
            [](const nb::bytes& board, const nb::bytes& hands, int turn, int ply, bool strict) {
                return Line(board, hands, turn, ply, strict);
            },
            "board"_a, "hands"_a, "turn"_a, "ply"_a, "strict"_a = true)
        .def("board", [](const Line& l) { return to_bytes(l.position().board(), SQUARES); })
        .def("hands", &hands_of)
        .def_prop_ro("turn", [](const Line& l) { return int(l.position().turn()); })
        .def_prop_ro("ply", &Line::ply)
        .def_prop_ro("key", [](const Line& l) { return l.position().key(); })
        .def("legal_moves",
             [](const Line& l) {
                 const MoveList list = l.legal_moves();
                 return std::vector<int>(list.begin(), list.end());
             })
        .def("is_legal", &Line::is_legal, "move"_a)
        .def("push", &Line::push, "move"_a)
        .def("pop", &Line::pop)
        .def("history",
             [](const Line& l) {
                 const auto& moves = l.history().moves();
                 return std::vector<int>(moves.begin(), moves.end());
             })
        .def("is_check", [](const Line& l) { return bool(l.position().checkers()); })
        .def("can_declare_win", [](const Line& l) { return l.position().can_declare_win(); })
        .def("repetitions", [](const Line& l) { return l.history().repetitions(); })
        .def("ending",
             [](const Line& l) {
                 const Result r = l.ending();
                 return nb::make_tuple(int(r.ending), r.winner);
             })
        .def("action_of", [](const Line& l, int move) { return int(action_of(l.position().turn(), Move(move))); },
             "move"_a)
        .def("move_of", &Line::move_of, "action"_a)
        .def("perft", &Line::perft, "depth"_a)
        .def("pack", &Line::pack)
        .def("copy", [](const Line& l) { return Line(l); });
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

template <typename Number>
SparseRows gather_all(Array<const Number> observations, Array<const int> places, Array<const float> factors) {
    const std::size_t rows = observations.ndim() ? observations.shape(0) : 0;
    const std::size_t size = rows ? observations.size() / rows : 0, columns = places.size();
    const int* const place = places.data();
    const float* const factor = data(factors, columns, "factors");
    for (std::size_t i = 0; i < columns && rows; ++i)
        if (place[i] < 0 || std::size_t(place[i]) >= size)
            throw std::out_of_range("a place is outside the observations");
    nb::gil_scoped_release released;
    return gather(observations.data(), int(rows), int(size), place, factor, int(columns));
}

void check_actions(const int* actions, std::size_t count, std::size_t limit) {
    if (std::any_of(actions, actions + count, [=](int a) { return a >= 0 && std::size_t(a) >= limit; }))
        throw std::out_of_range("an action is outside 0 … " + std::to_string(limit - 1));
}

SparseRows sparse_rows(Array<const int> columns, Array<const float> values, int width) {
    const std::size_t rows = columns.ndim() ? columns.shape(0) : 0, count = rows ? columns.size() / rows : 0;
    const int* const from = columns.data();
    const float* const numbers = data(values, rows * count, "values");
    check_actions(from, rows * count, width);
    nb::gil_scoped_release released;
    SparseRows result(width);
    std::vector<int> kept(count), place(count);
    for (std::size_t row = 0; row < rows; ++row) {
        int found = 0;
        for (std::size_t i = row * count; i < (row + 1) * count; ++i)
            if (from[i] >= 0) kept[found] = from[i], place[found++] = int(i);
        result.add_row(kept.data(), found, [&](int i) { return numbers[place[i]]; });
    }
    return result;
}

void score_all(Array<const float> features, Array<const float> weight, Array<const float> bias,
               Array<const int> actions, Array<float> out, int threads) {
    const std::size_t rows = actions.ndim() ? actions.shape(0) : 0, count = rows ? actions.size() / rows : 0;
    const std::size_t width = bias.size() ? weight.size() / bias.size() : 0;
    const float* const from = data(features, rows * width, "features");
    const float* const matrix = data(weight, bias.size() * width, "weight");
    float* const to = data(out, rows * count, "out");
    check_actions(actions.data(), rows * count, bias.size());
    nb::gil_scoped_release released;
    score(from, matrix, bias.data(), actions.data(), int(rows), int(count), int(width), to, threads);
}

void list_all(Array<const bool> legal, Array<int> out) {
    const std::size_t rows = out.ndim() ? out.shape(0) : 0;
    const std::size_t actions = rows ? legal.size() / rows : 0, count = rows ? out.size() / rows : 0;
    const bool* const mask = data(legal, rows * actions, "legal");
    nb::gil_scoped_release released;
    list_actions(reinterpret_cast<const u8*>(mask), int(rows), int(actions), int(count), out.data());
}

void bind_gather(nb::module_& m) {
    nb::class_<SparseRows>(m, "SparseRows")
        .def_static("gather", &gather_all<u8>, "observations"_a.noconvert(), "places"_a, "factors"_a)
        .def_static("gather", &gather_all<float>, "observations"_a.noconvert(), "places"_a, "factors"_a)
        .def(
            "__init__",
            [](SparseRows* self, Array<const int> columns, Array<const float> values, int width) {
                new (self) SparseRows(sparse_rows(columns, values, width));
            },
            "columns"_a, "values"_a, "width"_a)
        .def_prop_ro("shape", [](const SparseRows& s) { return nb::make_tuple(s.rows(), s.columns()); })
        .def("transposed", &SparseRows::transposed, nb::call_guard<nb::gil_scoped_release>())
        .def(
            "times",
            [](const SparseRows& s, Array<const float> dense, Array<float> out, int threads) {
                const std::size_t width = dense.ndim() == 2 ? dense.shape(1) : 0;
                const float* const from = data(dense, s.columns() * width, "dense");
                float* const to = data(out, s.rows() * width, "out");
                nb::gil_scoped_release released;
                s.times(from, int(width), to, threads);
            },
            "dense"_a, "out"_a, "threads"_a);
    m.def("list_actions", &list_all, "legal"_a, "out"_a);
    m.def("score", &score_all, "features"_a, "weight"_a, "bias"_a, "actions"_a, "out"_a, "threads"_a);
}

}  // namespace
}  // namespace keisei

NB_MODULE(KEISEI_MODULE, m) {
    using namespace keisei;
    // While Python shuts down, torch lets go of nothing that its graphs hold, and SparseRows are held by graphs.
    nb::set_leak_warnings(false);
    nb::exception<PositionError>(m, "PositionError", PyExc_ValueError);
    m.attr("INSTRUCTION_SET") = KEISEI_ISA_NAME;
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
    bind_gather(m);
    bind_replay(m);
    bind_ludo(m);
    m.def("expand", &expand, "packed"_a, "max_plies"_a, "observations"_a.none(), "legal"_a.none());
    m.def("sample", &sample, "logits"_a, "legal"_a, "uniforms"_a, "temperature"_a, "epsilons"_a, "actions"_a,
          "log_probs"_a);
    m.def("row_uniforms", &row_uniforms, "seed"_a, "first_game"_a, "game"_a, "episode"_a, "ply"_a, "stream"_a,
          "seat"_a, "out"_a);
    m.def("grab", &grab_all, "packed"_a, "keys"_a, "actions"_a, "scores"_a, "nodes"_a);
    m.def("search", &search_all, "packed"_a, "depth"_a, "keys"_a, "actions"_a, "scores"_a, "nodes"_a);
    m.def("cpu_features", &cpu_features);
}
