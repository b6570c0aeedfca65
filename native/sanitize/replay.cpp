// Replays for the sanitizers.
#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "replay/replay.h"
#include "replay/sum_tree.h"
#include "sanitize/checks.h"
#include "sanitize/parts.h"

namespace keisei {
namespace {

// A replay of random slabs, with arrays of exactly the right size.
class Replay {
  public:
    Replay(SlabSizes sizes, ReturnRule rule)
        : sizes_(sizes), rule_(rule), acting_(new bool[sizes.places() + sizes.slots()]),
          terminated_(new bool[sizes.steps * sizes.games]), truncated_(new bool[sizes.steps * sizes.games]),
          seat_(sizes.places() + sizes.slots()), final_seat_(sizes.places()), owner_(sizes.places()),
          reward_(std::size_t(sizes.steps) * sizes.games * sizes.seats), count_(rule.chains(sizes)),
          place_(count_.size() * rule.n_step), open_seat_(place_.size()), earned_(place_.size()),
          factor_(place_.size()), rewards_(SLABS * sizes.places()), discounts_(rewards_.size()),
          next_(rewards_.size()), closed_(sizes.places() + place_.size()), drawn_(SLABS), listed_(rewards_.size()),
          tree_(rewards_.size()) {}

    std::size_t take(Random& random, int slab) {
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
        if (!slab) std::fill(count_.begin(), count_.end(), 0);  // open decisions of slabs that are used again
        drawn_[slab] = 0;
        tree_.clear(std::size_t(slab) * sizes_.places(), sizes_.places());
        const SlabColumns columns{acting_.get(), seat_.data(), owner_.data(), reward_.data(),
                                  terminated_.get(), truncated_.get(), final_seat_.data()};
        const std::size_t found =
            follow(sizes_, rule_, slab, columns,
                   {count_.data(), place_.data(), open_seat_.data(), earned_.data(), factor_.data()},
                   {rewards_.data(), discounts_.data(), next_.data()}, closed_.data());
        add_places(closed_.data(), found, sizes_.places(), drawn_.data(), listed_.data());
        const std::vector<float> priorities(found, 1.5f);
        tree_.set(closed_.data(), priorities.data(), found);
        return found;
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

  private:
    static constexpr int SLABS = 3, BYTES = 7;

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
                      {rewards_.data(), discounts_.data(), next_.data()}, places, count,
                      {rows.data(), next_rows.data(), chosen.data(), rewards.data(), discounts.data()});
        for (std::size_t i = 0; i < count; ++i) {
            const int next = next_[places[i]], within = next % sizes_.positions();
            const int expected = next < 0 ? 0 : within < sizes_.final_positions() ? 1 : 2;
            need(rows[i * BYTES] == 1 && chosen[i] == 3, "a decision was copied from elsewhere");
            need(next_rows[i * BYTES + BYTES - 1] == expected, "a next position was copied from elsewhere");
        }
    }

    SlabSizes sizes_;
    ReturnRule rule_;
    std::unique_ptr<bool[]> acting_, terminated_, truncated_;
    std::vector<signed char> seat_, final_seat_;
    std::vector<short> owner_;
    std::vector<float> reward_;
    std::vector<int> count_, place_, open_seat_;
    std::vector<double> earned_, factor_;
    std::vector<float> rewards_, discounts_;
    std::vector<int> next_, closed_, drawn_, listed_;
    SumTree tree_;
};

}  // namespace

std::string replays() {
    Random random(17);
    std::size_t closed = 0;
    for (int round = 0; round < 60; ++round) {
        const bool simultaneous = random.below(2);
        const int seats = 1 + random.below(4);
        const SlabSizes sizes{1 + random.below(9), 1 + random.below(9), seats, simultaneous};
        Replay replay(sizes, {1 + random.below(5), 0.9, 0, seats == 2 && !simultaneous && random.below(2)});
        for (int slab = 0; slab < 5; ++slab) closed += replay.take(random, slab % 3);
        replay.draw(random);
    }
    return std::to_string(closed) + " decisions followed";
}

}  // namespace keisei
