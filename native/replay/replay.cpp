#include "replay/replay.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "randomness.h"

namespace keisei {
namespace {

// A decision whose outcome is not known yet.
struct Open {
    int place, seat;
    double earned, factor;
};

// Follows the games of a table. What changes with every row lies in local memory, so that the compiler knows that
// nothing else points to it.
class Follower {
  public:
    Follower(const SlabSizes& sizes, const ReturnRule& rule, int slab, const SlabColumns& columns, Outcomes outcomes,
             int* closed)
        : sizes_(sizes), rule_(rule), columns_(columns), outcomes_(outcomes), closed_(closed), slots_(sizes.slots()),
          first_place_(slab * sizes.places()), first_position_(slab * sizes.positions()) {}

    std::size_t follow(OpenDecisions open) {
        const std::size_t chains = rule_.chains(sizes_), entries = chains * rule_.n_step;
        count_.assign(open.count, open.count + chains);
        open_.resize(entries);
        for (std::size_t i = 0; i < entries; ++i) open_[i] = {open.place[i], open.seat[i], open.earned[i], open.factor[i]};
        if (rule_.one_chain) walk<true>();
        else walk<false>();
        std::copy(count_.begin(), count_.end(), open.count);
        for (std::size_t i = 0; i < entries; ++i) {
            open.place[i] = open_[i].place;
            open.seat[i] = open_[i].seat;
            open.earned[i] = open_[i].earned;
            open.factor[i] = open_[i].factor;
        }
        return found_;
    }

  private:
    template <bool OneChain>
    void walk() {
        const int rows = sizes_.simultaneous ? sizes_.seats : 1, chains = OneChain ? 1 : sizes_.seats;
        for (int step = 0; step < sizes_.steps; ++step)
            for (int game = 0; game < sizes_.games; ++game) {
                for (int slot = game * rows; slot < (game + 1) * rows; ++slot) meet<OneChain>(step, game, slot);
                const int at = step * sizes_.games + game;
                earn(game * chains, chains, columns_.reward + std::size_t(at) * sizes_.seats);
                if (columns_.terminated[at]) end(game * chains, chains);
                else if (columns_.truncated[at]) cut<OneChain>(step, game, chains);
            }
    }

    int checked(int seat) const {
        if (seat < 0 || seat >= sizes_.seats) throw std::out_of_range("a seat is none of the game");
        return seat;
    }

    // A row acts: if it is the owner's, the oldest decision of a full chain bootstraps there, and a new one begins.
    template <bool OneChain>
    void meet(int step, int game, int slot) {
        const int row = step * slots_ + slot;
        if (!columns_.acting[row] || columns_.owner[row] != rule_.owner) return;
        const int seat = checked(columns_.seat[row]), chain = OneChain ? game : game * sizes_.seats + seat;
        Open* const first = &open_[std::size_t(chain) * rule_.n_step];
        int& count = count_[chain];
        if (count == rule_.n_step) {
            close(*first, first_position_ + row, seat);
            std::copy(first + 1, first + count, first);
            --count;
        }
        first[count++] = {first_place_ + row, seat, 0, 1};
    }

    void earn(int first_chain, int chains, const float* reward) {
        for (int chain = first_chain; chain < first_chain + chains; ++chain) {
            Open* const first = &open_[std::size_t(chain) * rule_.n_step];
            for (Open* open = first; open != first + count_[chain]; ++open) {
                open->earned += open->factor * double(reward[open->seat]);
                open->factor *= rule_.discount;
            }
        }
    }

    void end(int first_chain, int chains) {
        for (int chain = first_chain; chain < first_chain + chains; ++chain) close_all(chain, -1, 0);
    }

    // A truncated game has a value at its last position. For a seat that would not act there, its last decision stands
    // in.
    template <bool OneChain>
    void cut(int step, int game, int chains) {
        for (int part = 0; part < chains; ++part) {
            const int chain = game * chains + part;
            if (!count_[chain]) continue;
            const int row = step * slots_ + (sizes_.simultaneous ? game * sizes_.seats + part : game);
            const int seat = columns_.final_seat[row];
            if (seat >= 0 && (OneChain || seat == part)) {
                close_all(chain, first_position_ + sizes_.final_positions() + row, checked(seat));
            } else {
                const Open newest = open_[std::size_t(chain) * rule_.n_step + count_[chain] - 1];
                close_all(chain, sizes_.position_of(newest.place), newest.seat);
            }
        }
    }

    void close_all(int chain, int next, int seat) {
        const Open* const first = &open_[std::size_t(chain) * rule_.n_step];
        for (const Open* open = first; open != first + count_[chain]; ++open) close(*open, next, seat);
        count_[chain] = 0;
    }

    // The decision bootstraps from a position in which `seat` acts; -1 where there is none.
    void close(const Open& open, int next, int seat) {
        const double turned = open.seat == seat ? open.factor : -open.factor;
        outcomes_.reward[open.place] = float(open.earned);
        outcomes_.discount[open.place] = next < 0 ? 0 : float(turned);
        outcomes_.next[open.place] = next;
        closed_[found_++] = open.place;
    }

    const SlabSizes sizes_;
    const ReturnRule rule_;
    const SlabColumns columns_;
    const Outcomes outcomes_;
    int* const closed_;
    const int slots_, first_place_, first_position_;
    std::vector<int> count_;
    std::vector<Open> open_;
    std::size_t found_ = 0;
};

constexpr std::size_t BLOCK = 32;  // rows that are asked for before the first is copied, since they lie anywhere

}  // namespace

std::size_t follow(const SlabSizes& sizes, const ReturnRule& rule, int slab, const SlabColumns& columns,
                   OpenDecisions open, Outcomes outcomes, int* closed) {
    return Follower(sizes, rule, slab, columns, outcomes, closed).follow(open);
}

void gather_sample(const SlabSizes& sizes, int packed_bytes, const SlabAddresses& addresses, Outcomes outcomes,
                   const int* places, std::size_t count, SampleRows out) {
    const int per_slab = sizes.places(), finals = sizes.final_positions();
    const auto row_of = [&](int position) -> const u8* {
        if (position < 0) return nullptr;
        const int slab = position / sizes.positions(), within = position % sizes.positions();
        const u64 base = within < finals ? addresses.packed[slab] : addresses.final_packed[slab];
        return reinterpret_cast<const u8*>(base) + std::size_t(within % finals) * packed_bytes;
    };
    const u8* rows[2 * BLOCK];
    for (std::size_t first = 0; first < count; first += BLOCK) {
        const std::size_t some = std::min(BLOCK, count - first);
        for (std::size_t i = 0; i < some; ++i) {
            const int place = places[first + i];
            rows[2 * i] = row_of(sizes.position_of(place));
            rows[2 * i + 1] = row_of(outcomes.next[place]);
            __builtin_prefetch(rows[2 * i]);
            __builtin_prefetch(rows[2 * i + 1]);
        }
        for (std::size_t i = 0; i < some; ++i) {
            const std::size_t at = first + i;
            const int place = places[at];
            std::memcpy(out.packed + at * packed_bytes, rows[2 * i], packed_bytes);
            u8* const next = out.next_packed + at * packed_bytes;
            if (rows[2 * i + 1]) std::memcpy(next, rows[2 * i + 1], packed_bytes);
            else std::memset(next, 0, packed_bytes);
            out.action[at] = reinterpret_cast<const int*>(addresses.action[place / per_slab])[place % per_slab];
            out.reward[at] = outcomes.reward[place];
            out.discount[at] = outcomes.discount[place];
        }
    }
}

void add_places(const int* places, std::size_t size, int places_of_a_slab, int* count, int* listed) {
    int slab = 0, first = 0;
    for (std::size_t i = 0; i < size; ++i) {
        if (places[i] < first || places[i] >= first + places_of_a_slab) {  // most are in the slab of the one before
            slab = places[i] / places_of_a_slab;
            first = slab * places_of_a_slab;
        }
        if (count[slab] == places_of_a_slab) throw std::out_of_range("more places of a slab are drawn than it has");
        if (listed) listed[first + count[slab]] = places[i] - first;
        ++count[slab];
    }
}

void draw_equally(u64 seed, u64 key, const int* count, const int* listed, std::size_t slabs, int places_of_a_slab,
                  int* drawn, std::size_t size) {
    std::vector<u64> ends(slabs);
    u64 total = 0;
    for (std::size_t slab = 0; slab < slabs; ++slab) ends[slab] = total += u64(count[slab]);
    if (!total) throw std::invalid_argument("there is nothing to draw");
    const KeyedUniforms uniforms({seed, key});
    for (std::size_t i = 0; i < size; ++i) {
        const u64 chosen = std::min(u64(uniforms[i] * double(total)), total - 1);
        const std::size_t slab = std::upper_bound(ends.begin(), ends.end(), chosen) - ends.begin();
        const u64 first = ends[slab] - u64(count[slab]);
        drawn[i] = int(slab) * places_of_a_slab + listed[slab * places_of_a_slab + (chosen - first)];
    }
}

}  // namespace keisei
