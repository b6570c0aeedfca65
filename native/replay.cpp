#include "replay.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "randomness.h"

namespace keisei {
namespace {

class Follower {
  public:
    Follower(const SlabSizes& sizes, const ReturnRule& rule, int slab, const SlabColumns& columns, OpenDecisions open,
             Outcomes outcomes, int* closed)
        : sizes_(sizes), rule_(rule), columns_(columns), open_(open), outcomes_(outcomes), closed_(closed),
          slots_(sizes.slots()), chains_(rule.chains_of_a_game(sizes)), first_place_(slab * sizes.places()),
          first_position_(slab * sizes.positions()) {}

    std::size_t follow() {
        const int rows = sizes_.simultaneous ? sizes_.seats : 1;
        for (int step = 0; step < sizes_.steps; ++step)
            for (int game = 0; game < sizes_.games; ++game) {
                for (int slot = game * rows; slot < (game + 1) * rows; ++slot) meet(step, game, slot);
                earn(step, game);
                const int at = step * sizes_.games + game;
                if (columns_.terminated[at]) end(game);
                else if (columns_.truncated[at]) cut(step, game);
            }
        return found_;
    }

  private:
    int checked(int seat) const {
        if (seat < 0 || seat >= sizes_.seats) throw std::out_of_range("a seat is none of the game");
        return seat;
    }

    int chain_of(int game, int seat) const { return rule_.one_chain ? game : game * sizes_.seats + seat; }

    // A row acts: if it is the owner's, the oldest decision of a full chain bootstraps there, and a new one begins.
    void meet(int step, int game, int slot) {
        const int row = step * slots_ + slot;
        if (!columns_.acting[row] || columns_.owner[row] != rule_.owner) return;
        const int seat = checked(columns_.seat[row]), chain = chain_of(game, seat);
        int& count = open_.count[chain];
        if (count == rule_.n_step) {
            close(chain, 0, first_position_ + row, seat);
            drop_oldest(chain);
        }
        const int at = chain * rule_.n_step + count++;
        open_.place[at] = first_place_ + row;
        open_.seat[at] = seat;
        open_.earned[at] = 0;
        open_.factor[at] = 1;
    }

    void drop_oldest(int chain) {
        const int first = chain * rule_.n_step, last = first + open_.count[chain]--;
        for (int at = first; at + 1 < last; ++at) {
            open_.place[at] = open_.place[at + 1];
            open_.seat[at] = open_.seat[at + 1];
            open_.earned[at] = open_.earned[at + 1];
            open_.factor[at] = open_.factor[at + 1];
        }
    }

    void earn(int step, int game) {
        const float* const reward = columns_.reward + std::size_t(step * sizes_.games + game) * sizes_.seats;
        for (int chain = game * chains_; chain < (game + 1) * chains_; ++chain) {
            const int first = chain * rule_.n_step;
            for (int at = first; at < first + open_.count[chain]; ++at) {
                open_.earned[at] += open_.factor[at] * double(reward[open_.seat[at]]);
                open_.factor[at] *= rule_.discount;
            }
        }
    }

    void end(int game) {
        for (int chain = game * chains_; chain < (game + 1) * chains_; ++chain) close_all(chain, -1, 0);
    }

    // A truncated game has a value at its last position. For a seat that would not act there, its last decision stands
    // in.
    void cut(int step, int game) {
        for (int part = 0; part < chains_; ++part) {
            const int chain = game * chains_ + part;
            if (!open_.count[chain]) continue;
            const int row = step * slots_ + (sizes_.simultaneous ? game * sizes_.seats + part : game);
            const int seat = columns_.final_seat[row];
            if (seat >= 0 && (rule_.one_chain || seat == part)) {
                close_all(chain, first_position_ + sizes_.final_positions() + row, checked(seat));
            } else {
                const int newest = chain * rule_.n_step + open_.count[chain] - 1;
                close_all(chain, sizes_.position_of(open_.place[newest]), open_.seat[newest]);
            }
        }
    }

    void close_all(int chain, int next, int seat) {
        for (int i = 0; i < open_.count[chain]; ++i) close(chain, i, next, seat);
        open_.count[chain] = 0;
    }

    // The decision bootstraps from a position in which `seat` acts; -1 where there is none.
    void close(int chain, int i, int next, int seat) {
        const int at = chain * rule_.n_step + i, place = open_.place[at];
        const double turned = open_.seat[at] == seat ? open_.factor[at] : -open_.factor[at];
        outcomes_.reward[place] = float(open_.earned[at]);
        outcomes_.discount[place] = next < 0 ? 0 : float(turned);
        outcomes_.next[place] = next;
        closed_[found_++] = place;
    }

    const SlabSizes& sizes_;
    const ReturnRule& rule_;
    const SlabColumns& columns_;
    OpenDecisions open_;
    Outcomes outcomes_;
    int* closed_;
    int slots_, chains_, first_place_, first_position_;
    std::size_t found_ = 0;
};

constexpr std::size_t BLOCK = 32;  // rows that are asked for before the first is copied, since they lie anywhere

}  // namespace

std::size_t follow(const SlabSizes& sizes, const ReturnRule& rule, int slab, const SlabColumns& columns,
                   OpenDecisions open, Outcomes outcomes, int* closed) {
    return Follower(sizes, rule, slab, columns, open, outcomes, closed).follow();
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

void draw_equally(u64 seed, u64 key, const int* count, const int* listed, std::size_t slabs, int places_of_a_slab,
                  int* drawn, std::size_t size) {
    std::vector<u64> ends(slabs);
    u64 total = 0;
    for (std::size_t slab = 0; slab < slabs; ++slab) ends[slab] = total += u64(count[slab]);
    if (!total) throw std::invalid_argument("there is nothing to draw");
    for (std::size_t i = 0; i < size; ++i) {
        const u64 chosen = std::min(u64(to_uniform(keyed_word({seed, key, i})) * double(total)), total - 1);
        const std::size_t slab = std::upper_bound(ends.begin(), ends.end(), chosen) - ends.begin();
        const u64 first = ends[slab] - u64(count[slab]);
        drawn[i] = int(slab) * places_of_a_slab + listed[slab * places_of_a_slab + (chosen - first)];
    }
}

}  // namespace keisei
