// The replay's part of the Python module. Checks shapes and places, so that no wrong number reaches memory.
#include <algorithm>
#include <stdexcept>
#include <string>

#include "arrays.h"
#include "bindings.h"
#include "replay/replay.h"
#include "replay/sum_tree.h"

using namespace nb::literals;

namespace keisei {
namespace {

// The slabs of a replay.
struct ReplaySlabs {
    SlabSizes sizes;
    int packed_bytes;
};

void gather_rows(const ReplaySlabs& self, Array<const u64> addresses, Array<float> rewards, Array<float> discounts,
                 Array<int> next, Array<const int> generations, Array<const int> places, Array<u8> packed_out,
                 Array<u8> next_out, Array<int> action_out, Array<float> reward_out, Array<float> discount_out,
                 Array<int> generation_out) {
    const std::size_t slabs = self.sizes.slabs, all = self.sizes.all_places(), count = places.size();
    const std::size_t bytes = count * self.packed_bytes;
    const u64* const bases = data(addresses, 3 * slabs, "addresses");
    check_range(places.data(), count, all, "a place");
    const Links links{data(rewards, all, "rewards"), data(discounts, all, "discounts"), data(next, all, "next"), nullptr};
    const int* const generation = data(generations, slabs, "generations");
    int* const generation_of = data(generation_out, count, "generations");
    for (std::size_t i = 0; i < count; ++i) {
        const int place = places.data()[i], position = links.next[place];
        const std::size_t slab = place / self.sizes.places(), following = position / self.sizes.positions();
        if (!bases[slab] || (position >= 0 && (following >= slabs || !bases[following])))
            throw std::out_of_range("a place leads to a slab that is not there");
        generation_of[i] = generation[slab];
    }
    const SampleRows out{data(packed_out, bytes, "packed"), data(next_out, bytes, "next_packed"),
                         data(action_out, count, "actions"), data(reward_out, count, "rewards"),
                         data(discount_out, count, "discounts")};
    nb::gil_scoped_release released;
    gather_sample(self.sizes, self.packed_bytes, {bases, bases + slabs, bases + 2 * slabs}, links, places.data(),
                  count, out);
}

// `listed` has room for all places, or none.
void add_drawn(const ReplaySlabs& self, Array<const int> places, Array<int> counts, Array<int> listed) {
    int* const count = data(counts, self.sizes.slabs, "counts");
    int* const list = listed.size() ? data(listed, self.sizes.all_places(), "listed") : nullptr;
    check_range(places.data(), places.size(), self.sizes.all_places(), "a place");
    check_range(count, self.sizes.slabs, std::size_t(self.sizes.places()) + 1, "a count");
    add_places(places.data(), places.size(), self.sizes.places(), count, list);
}

void draw_listed(const ReplaySlabs& self, u64 seed, u64 key, Array<const int> counts, Array<const int> listed,
                 Array<int> out) {
    const int* const count = data(counts, self.sizes.slabs, "counts");
    const int* const from = data(listed, self.sizes.all_places(), "listed");
    check_range(count, self.sizes.slabs, std::size_t(self.sizes.places()) + 1, "a count");
    nb::gil_scoped_release released;
    draw_equally(seed, key, count, from, self.sizes.slabs, self.sizes.places(), out.data(), out.size());
}

void bind_slabs(nb::module_& m) {
    nb::class_<ReplaySlabs>(m, "ReplaySlabs")
        .def(
            "__init__",
            [](ReplaySlabs* self, int slabs, int steps, int games, int seats, bool simultaneous, int packed_bytes) {
                new (self) ReplaySlabs{{slabs, steps, games, seats, simultaneous}, packed_bytes};
            },
            "slabs"_a, "steps"_a, "games"_a, "seats"_a, "simultaneous"_a, "packed_bytes"_a)
        .def("gather", &gather_rows)
        .def("add", &add_drawn)
        .def("draw", &draw_listed);
}

void bind_tree(nb::module_& m) {
    nb::class_<SumTree>(m, "SumTree")
        .def(nb::init<std::size_t>(), "places"_a)
        .def_prop_ro("total", &SumTree::total)
        .def_prop_ro("nbytes", &SumTree::nbytes)
        .def(
            "set",
            [](SumTree& tree, Array<const int> places, Array<const float> priorities) {
                check_range(places.data(), places.size(), tree.places(), "a place");
                const float* const numbers = data(priorities, places.size(), "priorities");
                nb::gil_scoped_release released;
                tree.set(places.data(), numbers, places.size());
            },
            "places"_a, "priorities"_a)
        .def(
            "clear",
            [](SumTree& tree, std::size_t first, std::size_t count) {
                if (first > tree.places() || count > tree.places() - first)
                    throw std::out_of_range("the tree has " + std::to_string(tree.places()) + " places");
                tree.clear(first, count);
            },
            "first"_a, "count"_a)
        .def(
            "get",
            [](const SumTree& tree, Array<const int> places, Array<float> out) {
                check_range(places.data(), places.size(), tree.places(), "a place");
                float* const numbers = data(out, places.size(), "out");
                for (std::size_t i = 0; i < places.size(); ++i) numbers[i] = tree.priority(places.data()[i]);
            },
            "places"_a, "out"_a)
        .def(
            "draw",
            [](const SumTree& tree, u64 seed, u64 key, Array<int> places, Array<float> priorities) {
                if (!(tree.total() > 0)) throw std::invalid_argument("there is nothing to draw");
                float* const numbers = data(priorities, places.size(), "priorities");
                nb::gil_scoped_release released;
                tree.draw(seed, key, places.data(), places.size());
                for (std::size_t i = 0; i < places.size(); ++i) numbers[i] = tree.priority(places.data()[i]);
            },
            "seed"_a, "key"_a, "places"_a, "priorities"_a);
}

}  // namespace

void bind_replay(nb::module_& m) {
    bind_slabs(m);
    bind_tree(m);
}

}  // namespace keisei
