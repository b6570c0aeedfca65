// Ludo as a part of the Python module.
#include <nanobind/stl/string.h>

#include <algorithm>

#include "arrays.h"
#include "bindings.h"
#include "ludo/batch.h"
#include "ludo/observation.h"

using namespace nb::literals;

namespace keisei {
namespace {

using ludo::Batch, ludo::Layout, ludo::ACTIONS;

constexpr const char* ENDING_NAMES[] = {"unfinished", "all home", "max_plies"};

std::size_t observation_bytes(const Batch& b) { return std::size_t(Layout(b.rules()).bytes()); }
std::size_t packed_bytes(const Batch& b) { return std::size_t(b.rules().packed_bytes()); }

void make_batch(Batch* self, int batch, u64 seed, u64 first_game, int players, bool blocks, bool capture_rolls,
                int max_plies, double progress, double leaving, double safety, double home, double captures,
                double discount, bool zero_sum, bool keep_standing) {
    if (batch < 1 || max_plies < 0) throw std::invalid_argument("batch must be at least 1, and max_plies at least 0");
    if (players < 2 || players > ludo::MAX_SEATS) throw std::invalid_argument("players must be 2, 3 or 4");
    const ludo::Shaping shaping{progress, leaving, safety, home, captures, discount, zero_sum, keep_standing};
    new (self) Batch(batch, seed, first_game, {{players, blocks, capture_rolls}, max_plies, shaping});
}

int step(Batch& b, Array<const int> actions, Array<float> rewards, Array<bool> terminated, Array<bool> truncated,
         Array<u8> ending, Array<float> scores, Array<int> plies, Array<int> final_game, Array<int> final_seat,
         Array<u8> final_packed) {
    const std::size_t n = b.size(), seats = b.rules().seats;
    const int* const chosen = data(actions, n, "actions");
    const ludo::StepOutput out{data(rewards, seats * n, "rewards"),
                               data(terminated, n, "terminated"),
                               data(truncated, n, "truncated"),
                               data(ending, n, "ending"),
                               data(scores, seats * n, "scores"),
                               data(plies, n, "plies"),
                               data(final_game, n, "final_game"),
                               data(final_seat, n, "final_seat"),
                               data(final_packed, n * packed_bytes(b), "final_packed")};
    nb::gil_scoped_release released;
    return b.step(chosen, out);
}

int expand(const Batch& b, Array<const u8> packed, Array<u8> observations, Array<bool> legal) {
    const std::size_t rows = packed.size() / packed_bytes(b);
    const u8* const in = data(packed, rows * packed_bytes(b), "packed");
    u8* const seen = data(observations, rows * observation_bytes(b), "observations");
    bool* const mask = data(legal, rows * ACTIONS, "legal");
    nb::gil_scoped_release released;
    return b.expand(in, int(rows), seen, mask);
}

void heuristic_actions(const Batch& b, Array<const int> games, Array<const u64> keys, Array<int> actions) {
    const std::size_t count = games.size();
    const int* const chosen = games.data();
    const u64* const key = data(keys, count, "keys");
    int* const to = data(actions, count, "actions");
    if (std::any_of(chosen, chosen + count, [&](int game) { return game < 0 || game >= b.size(); }))
        throw std::out_of_range("a game is outside the batch");
    nb::gil_scoped_release released;
    b.heuristic_actions(chosen, int(count), key, to);
}

nb::tuple scale_of(const Batch& b) {
    nb::list list;
    for (const float factor : ludo::observation_scale(b.rules())) list.append(factor);
    return nb::tuple(list);
}

}  // namespace

void bind_ludo(nb::module_& m) {
    m.attr("LUDO_ENDINGS") = names(ENDING_NAMES, std::size(ENDING_NAMES));
    nb::class_<Batch>(m, "LudoBatch")
        .def("__init__", &make_batch, "batch"_a, "seed"_a, "first_game"_a, "players"_a, "blocks"_a, "capture_rolls"_a,
             "max_plies"_a, "progress"_a, "leaving"_a, "safety"_a, "home"_a, "captures"_a, "discount"_a, "zero_sum"_a,
             "keep_standing"_a)
        .def_prop_ro("packed_bytes", &packed_bytes)
        .def_prop_ro("observation_scale", &scale_of)
        .def("rows",
             [](const Batch& b, Array<int> seat, Array<int> episode, Array<int> ply) {
                 const std::size_t n = b.size();
                 b.rows(data(seat, n, "seat"), data(episode, n, "episode"), data(ply, n, "ply"));
             })
        .def("observe",
             [](const Batch& b, Array<u8> out) {
                 u8* const to = data(out, b.size() * observation_bytes(b), "out");
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
                 u8* const to = data(out, b.size() * packed_bytes(b), "out");
                 nb::gil_scoped_release released;
                 b.pack(to);
             })
        .def("expand", &expand, "packed"_a, "observations"_a, "legal"_a)
        .def("random_actions",
             [](const Batch& b, Array<int> out) {
                 int* const to = data(out, b.size(), "out");
                 nb::gil_scoped_release released;
                 b.random_actions(to);
             })
        .def("heuristic_actions", &heuristic_actions, "games"_a, "keys"_a, "actions"_a)
        .def("step", &step)
        .def("save",
             [](const Batch& b) {
                 const std::string blob = b.save();
                 return nb::bytes(blob.data(), blob.size());
             })
        .def("load", [](Batch& b, const nb::bytes& blob) { return b.load(std::string(blob.c_str(), blob.size())); });
}

}  // namespace keisei
