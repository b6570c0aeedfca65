// Links, rollouts and replays for the sanitizers.
#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "links/links.h"
#include "replay/replay.h"
#include "replay/sum_tree.h"
#include "sanitize/checks.h"
#include "sanitize/parts.h"

namespace keisei {
namespace {

// The columns of a slab, with arrays of exactly the right size.
class RandomSlab {
  public:
    explicit RandomSlab(const SlabSizes& sizes)
        : sizes_(sizes), acting_(new bool[sizes.places() + sizes.slots()]),
          terminated_(new bool[sizes.steps * sizes.games]), truncated_(new bool[sizes.steps * sizes.games]),
          seat_(sizes.places() + sizes.slots()), final_seat_(sizes.places()), owner_(sizes.places()),
          reward_(std::size_t(sizes.steps) * sizes.games * sizes.seats) {}

    SlabColumns fill(Random& random) {
        for (std::size_t row = 0; row < seat_.size(); ++row) {
            acting_[row] = !sizes_.simultaneous || random.below(4) > 0;
            const int own = int(row) % sizes_.seats;
            seat_[row] = static_cast<signed char>(sizes_.simultaneous ? own : random.below(sizes_.seats));
        }
        for (short& owner : owner_) owner = short(random.below(3) - 1);
        for (signed char& seat : final_seat_) seat = static_cast<signed char>(random.below(sizes_.seats + 1) - 1);
        for (float& reward : reward_) reward = float(random.below(5));
        for (int game = 0; game < sizes_.steps * sizes_.games; ++game) {
            terminated_[game] = random.below(9) == 0;
            truncated_[game] = random.below(9) == 0;
        }
        return {acting_.get(),     seat_.data(),      owner_.data(),     reward_.data(),
                terminated_.get(), truncated_.get(), final_seat_.data()};
    }

  private:
    const SlabSizes sizes_;
    std::unique_ptr<bool[]> acting_, terminated_, truncated_;
    std::vector<signed char> seat_, final_seat_;
    std::vector<short> owner_;
    std::vector<float> reward_;
};

// A rollout of random slabs: links that a slab leaves open get the places behind those of the next one.
class Rollout {
  public:
    Rollout(SlabSizes sizes, LinkRule rule)
        : sizes_(sizes), rule_(rule), slab_(sizes), rows_(rule.most_open(sizes)), open_{rows_.data(), 0},
          closed_(sizes.places() + rows_.size()) {}

    std::size_t take(Random& random) {
        const std::size_t all = sizes_.places() + open_.count;
        for (std::size_t i = 0; i < open_.count; ++i) rows_[i].place = sizes_.places() + int(i);
        std::vector<float> rewards(all), discounts(all), values(sizes_.positions() + open_.count, 0.5f);
        std::vector<int> next(all), plies(all);
        const Links links{rewards.data(), discounts.data(), next.data(), plies.data()};
        const SlabColumns columns = slab_.fill(random);
        const std::size_t found = follow(sizes_, rule_, 0, {true, true}, columns, open_, links, closed_.data());
        std::vector<int> places(closed_.begin(), closed_.begin() + found);
        std::sort(places.begin(), places.end());
        need(std::adjacent_find(places.begin(), places.end()) == places.end(), "a link was closed twice");
        const std::vector<float> ratios(places.size(), 0.9f);
        std::vector<float> advantages(places.size()), returns(places.size());
        for (const float* ratio : {static_cast<const float*>(nullptr), ratios.data()})
            estimate(sizes_, links, {values.data(), ratio, ratio, 0.9}, places.data(), places.size(), advantages.data(),
                     returns.data());
        for (const float value : returns) need(value > -100 && value < 100, "a return came from nowhere");
        return places.size();
    }

  private:
    const SlabSizes sizes_;
    const LinkRule rule_;
    RandomSlab slab_;
    std::vector<Open> rows_;
    OpenRows open_;
    std::vector<int> closed_;
};

// A replay of random slabs.
class Replay {
  public:
    Replay(SlabSizes sizes, LinkRule rule)
        : sizes_(sizes), rule_(rule), slab_(sizes), rows_(rule.most_open(sizes)), open_{rows_.data(), 0},
          rewards_(sizes.all_places()), discounts_(rewards_.size()), next_(rewards_.size()),
          closed_(sizes.places() + rows_.size()), drawn_(SLABS), listed_(rewards_.size()), tree_(rewards_.size()) {}

    std::size_t take(Random& random, int slab) {
        if (!slab) open_.count = 0;  // open decisions of slabs that are used again
        drawn_[slab] = 0;
        tree_.clear(std::size_t(slab) * sizes_.places(), sizes_.places());
        const SlabColumns columns = slab_.fill(random);
        const bool end = random.below(3) == 0;
        return add(follow(sizes_, rule_, slab, {true, end}, columns, open_, links(), closed_.data()));
    }

    void draw(Random& random) {
        if (!(tree_.total() > 0)) return;  // nothing was closed
        int places[33];
        tree_.draw(random.word(), random.word(), places, std::size(places));
        for (const int place : places) need(tree_.priority(place) > 0, "a place without a priority was drawn");
        draw_equally(random.word(), random.word(), drawn_.data(), listed_.data(), SLABS, sizes_.places(), places,
                     std::size(places));
        for (const int place : places) need(tree_.priority(place) > 0, "a place that is not listed was drawn");
        copy(places, std::size(places));
    }

    static constexpr int SLABS = 3;

  private:
    static constexpr int BYTES = 7;

    Links links() { return {rewards_.data(), discounts_.data(), next_.data(), nullptr}; }

    std::size_t add(std::size_t found) {
        add_places(closed_.data(), found, sizes_.places(), drawn_.data(), listed_.data());
        const std::vector<float> priorities(found, 1.5f);
        tree_.set(closed_.data(), priorities.data(), found);
        return found;
    }

    void copy(const int* places, std::size_t count) {
        const std::vector<u8> packed((sizes_.places() + sizes_.slots()) * BYTES, 1), last(sizes_.places() * BYTES, 2);
        const std::vector<int> actions(sizes_.places(), 3);
        std::vector<u64> at[3];
        for (int slab = 0; slab < SLABS; ++slab) {
            at[0].push_back(reinterpret_cast<u64>(packed.data()));
            at[1].push_back(reinterpret_cast<u64>(last.data()));
            at[2].push_back(reinterpret_cast<u64>(actions.data()));
        }
        std::vector<u8> rows(count * BYTES), next_rows(count * BYTES);
        std::vector<int> chosen(count);
        std::vector<float> rewards(count), discounts(count);
        gather_sample(sizes_, BYTES, {at[0].data(), at[1].data(), at[2].data()},
                      links(), places, count,
                      {rows.data(), next_rows.data(), chosen.data(), rewards.data(), discounts.data()});
        for (std::size_t i = 0; i < count; ++i) {
            const int next = next_[places[i]], within = next % sizes_.positions();
            const int expected = next < 0 ? 0 : within < sizes_.final_positions() ? 1 : 2;
            need(rows[i * BYTES] == 1 && chosen[i] == 3, "a decision was copied from elsewhere");
            need(next_rows[i * BYTES + BYTES - 1] == expected, "a next position was copied from elsewhere");
        }
    }

    const SlabSizes sizes_;
    const LinkRule rule_;
    RandomSlab slab_;
    std::vector<Open> rows_;
    OpenRows open_;
    std::vector<float> rewards_, discounts_;
    std::vector<int> next_, closed_, drawn_, listed_;
    SumTree tree_;
};

}  // namespace

std::string rollouts_and_replays() {
    Random random(17);
    std::size_t closed = 0;
    for (int round = 0; round < 60; ++round) {
        const bool simultaneous = random.below(2);
        const int seats = 1 + random.below(4);
        const bool one_chain = seats == 2 && !simultaneous && random.below(2);
        const int steps = 1 + random.below(9), games = 1 + random.below(9);
        Rollout rollout({1, steps, games, seats, simultaneous}, {1, 0.9, 0, one_chain});
        Replay replay({Replay::SLABS, steps, games, seats, simultaneous}, {1 + random.below(5), 0.9, 0, one_chain});
        for (int slab = 0; slab < 5; ++slab) closed += rollout.take(random) + replay.take(random, slab % Replay::SLABS);
        replay.draw(random);
    }
    return std::to_string(closed) + " decisions followed";
}

}  // namespace keisei
