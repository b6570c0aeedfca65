// The core as a Python module. Checks shapes; the rules are checked where they live.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <stdexcept>
#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#endif

#include "arrays.h"
#include "bindings.h"
#include "randomness.h"
#include "sampling.h"
#include "sparse_rows.h"

using namespace nb::literals;

namespace keisei {
namespace {

// Returns -1, or 2 * row + fault - 1 of the first row that nothing can be drawn from.
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

void bind_sparse_rows(nb::module_& m) {
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
    m.attr("INSTRUCTION_SET") = KEISEI_ISA_NAME;
    bind_shogi(m);
    bind_ludo(m);
    bind_links(m);
    bind_replay(m);
    bind_sparse_rows(m);
    m.def("sample", &sample, "logits"_a, "legal"_a, "uniforms"_a, "temperature"_a, "epsilons"_a, "actions"_a,
          "log_probs"_a);
    m.def("row_uniforms", &row_uniforms, "seed"_a, "first_game"_a, "game"_a, "episode"_a, "ply"_a, "stream"_a,
          "seat"_a, "out"_a);
    m.def("cpu_features", &cpu_features);
}
