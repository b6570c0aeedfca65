// The part of the Python module for links. Checks shapes and numbers, so that no wrong one reaches memory.
#include <nanobind/stl/pair.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "arrays.h"
#include "bindings.h"
#include "links/links.h"

using namespace nb::literals;

namespace keisei {
namespace {

// Makes the links of slabs of one size.
struct Linker {
    SlabSizes sizes;
    LinkRule rule;

    // The arrays of links have an element for each place, also for decisions whose slab is gone.
    Links links(Array<float>& reward, Array<float>& discount, Array<int>& next, Array<int>& plies) const {
        const std::size_t size = std::max(reward.size(), std::size_t(sizes.all_places()));
        return {data(reward, size, "reward"), data(discount, size, "discount"), data(next, size, "next"),
                plies.size() ? data(plies, size, "plies") : nullptr};
    }

    // The rows of a table, which a checkpoint may have brought.
    OpenRows open(Array<u8>& rows, std::size_t count, std::size_t places) const {
        const std::size_t most = rule.most_open(sizes);
        Open* const first = reinterpret_cast<Open*>(data(rows, most * sizeof(Open), "rows"));
        if (count > most) throw std::out_of_range("there are more open decisions than the table has");
        for (const Open* row = first; row != first + count; ++row)
            if (row->place < 0 || std::size_t(row->place) >= places || row->plies < 0)
                throw std::out_of_range("an open decision has no place");
        return {first, count};
    }
};

std::pair<std::size_t, std::size_t> follow_slab(
    const Linker& self, int slab, bool games, bool end, Array<const bool> acting, Array<const signed char> seat,
    Array<const short> owner, Array<const float> reward, Array<const bool> terminated, Array<const bool> truncated,
    Array<const signed char> final_seat, Array<u8> rows, std::size_t count, Array<float> rewards,
    Array<float> discounts, Array<int> next, Array<int> plies, Array<int> closed) {
    const SlabSizes& sizes = self.sizes;
    const std::size_t places = sizes.places(), ends = places + sizes.slots();
    const std::size_t played = std::size_t(sizes.steps) * sizes.games;
    check_range(&slab, 1, sizes.slabs, "a slab");
    const SlabColumns columns{data(acting, ends, "acting"),          data(seat, ends, "seat"),
                              data(owner, places, "owner"),          data(reward, played * sizes.seats, "reward"),
                              data(terminated, played, "terminated"), data(truncated, played, "truncated"),
                              data(final_seat, places, "final_seat")};
    const Links links = self.links(rewards, discounts, next, plies);
    OpenRows open = self.open(rows, count, rewards.size());
    int* const out = data(closed, places + self.rule.most_open(sizes), "closed");
    nb::gil_scoped_release released;
    const std::size_t found = follow(sizes, self.rule, slab, {games, end}, columns, open, links, out);
    return {found, open.count};
}

void estimate_places(const Linker& self, Array<float> rewards, Array<float> discounts, Array<int> next,
                     Array<int> plies, Array<const float> values, Array<const float> rho, Array<const float> c,
                     double trace, Array<const int> places, Array<float> advantages, Array<float> returns) {
    const Links links = self.links(rewards, discounts, next, plies);
    const std::size_t count = places.size(), all = rewards.size(), gone = all - self.sizes.all_places();
    if (!links.plies) throw std::invalid_argument("an estimate needs the plies of links");
    const float* const value = data(values, self.sizes.all_positions() + gone, "values");
    check_range(places.data(), count, all, "a place");
    for (std::size_t i = 0; i < count; ++i) {
        const int place = places.data()[i];
        if (links.next[place] >= int(values.size()) || links.plies[place] < 0)
            throw std::out_of_range("a link leads to no position");
    }
    const bool corrected = rho.size() > 0;
    const Valued valued{value, corrected ? data(rho, count, "rho") : nullptr, corrected ? data(c, count, "c") : nullptr,
                        trace};
    float* const out[] = {data(advantages, count, "advantages"), data(returns, count, "returns")};
    nb::gil_scoped_release released;
    estimate(self.sizes, links, valued, places.data(), count, out[0], out[1]);
}

}  // namespace

void bind_links(nb::module_& m) {
    static_assert(sizeof(Open) == 32, "keisei/experience/links.py has rows of 32 bytes");
    nb::class_<Linker>(m, "Linker")
        .def(
            "__init__",
            [](Linker* self, int slabs, int steps, int games, int seats, bool simultaneous, int n_step, double discount,
               int owner, bool one_chain) {
                if (std::min({slabs, steps, games, seats, n_step}) < 1)
                    throw std::invalid_argument("slabs, steps, games, seats and n_step are 1 or more");
                new (self) Linker{{slabs, steps, games, seats, simultaneous}, {n_step, discount, owner, one_chain}};
            },
            "slabs"_a, "steps"_a, "games"_a, "seats"_a, "simultaneous"_a, "n_step"_a, "discount"_a, "owner"_a,
            "one_chain"_a)
        .def("follow", &follow_slab)
        .def("estimate", &estimate_places);
}

}  // namespace keisei
