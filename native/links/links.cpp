#include "links/links.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

namespace keisei {
namespace {

// Follows the games of a table. What changes with every row lies in local memory, so that the compiler knows that
// nothing else points to it. There, the plies of open decisions are counted as if the slab had not begun: `now` plies of
// it are added where they are told.
class Follower {
  public:
    Follower(const SlabSizes& sizes, const LinkRule& rule, int slab, const SlabColumns& columns, OpenRows& open,
             Links links, int* closed)
        : sizes_(sizes), rule_(rule), columns_(columns), links_(links), out_(open), closed_(closed),
          slots_(sizes.slots()), parts_(rule.chains_of_a_game(sizes)), first_place_(slab * sizes.places()),
          first_position_(slab * sizes.positions()), count_(rule.chains(sizes)), open_(rule.most_open(sizes)) {
        for (std::size_t i = 0; i < open.count; ++i) {
            const Open& row = open.rows[i];
            if (row.chain < 0 || row.chain >= int(count_.size()) || count_[row.chain] == rule.n_step)
                throw std::out_of_range("an open decision is of no chain of the table");
            checked(row.seat);
            first_of(row.chain)[count_[row.chain]++] = row;
        }
    }

    template <bool OneChain>
    std::size_t follow(Stretch stretch) {
        const int now = stretch.games ? sizes_.steps : 0;
        if (stretch.games) walk<OneChain>();
        if (stretch.end) stop<OneChain>(now);
        out_.count = 0;
        for (int chain = 0; chain < int(count_.size()); ++chain)
            for (int i = 0; i < count_[chain]; ++i) {
                out_.rows[out_.count] = first_of(chain)[i];
                out_.rows[out_.count++].plies += now;
            }
        return found_;
    }

  private:
    template <bool OneChain>
    void walk() {
        const int rows = sizes_.simultaneous ? sizes_.seats : 1;
        for (int step = 0; step < sizes_.steps; ++step)
            for (int game = 0; game < sizes_.games; ++game) {
                for (int slot = game * rows; slot < (game + 1) * rows; ++slot) meet<OneChain>(step, game, slot);
                const int at = step * sizes_.games + game;
                earn<OneChain>(game, columns_.reward + std::size_t(at) * sizes_.seats);
                if (columns_.terminated[at]) end(game, step + 1);
                else if (columns_.truncated[at]) cut<OneChain>(step, game);
            }
    }

    template <bool OneChain>
    void stop(int now) {
        for (int chain = 0; chain < int(count_.size()); ++chain) {
            const int row = sizes_.places() + slot_of(chain), seat = columns_.seat[row];
            if (columns_.acting[row] && (OneChain || seat == chain % parts_))
                close_all(chain, now, first_position_ + row, checked(seat));
        }
    }

    Open* first_of(int chain) { return &open_[std::size_t(chain) * rule_.n_step]; }
    int slot_of(int chain) const { return sizes_.simultaneous ? chain : chain / parts_; }

    int checked(int seat) const {
        if (seat < 0 || seat >= sizes_.seats) throw std::out_of_range("a seat is none of the game");
        return seat;
    }

    // A row acts: if it is the owner's, the oldest link of a full chain goes on there, and a new one begins.
    template <bool OneChain>
    void meet(int step, int game, int slot) {
        const int row = step * slots_ + slot;
        if (!columns_.acting[row] || columns_.owner[row] != rule_.owner) return;
        const int seat = checked(columns_.seat[row]), chain = OneChain ? game : game * sizes_.seats + seat;
        Open* const first = first_of(chain);
        int& count = count_[chain];
        if (count == rule_.n_step) {
            close(*first, step, first_position_ + row, seat);
            std::copy(first + 1, first + count, first);
            --count;
        }
        first[count++] = {chain, first_place_ + row, seat, -step, 0, 1};
    }

    template <bool OneChain>
    void earn(int game, const float* reward) {
        const int parts = OneChain ? 1 : parts_;
        const double discount = rule_.discount;
        for (int chain = game * parts; chain < (game + 1) * parts; ++chain) {
            Open* const first = first_of(chain);
            Open* const last = first + count_[chain];  // a copy, since the compiler cannot know that it stays
            for (Open* open = first; open != last; ++open) {
                open->earned += open->factor * double(reward[open->seat]);
                open->factor *= discount;
            }
        }
    }

    void end(int game, int now) {
        for (int part = 0; part < parts_; ++part) close_all(game * parts_ + part, now, -1, 0);
    }

    // A truncated game has a value at its last position. For a seat that would not act there, its last decision stands
    // in.
    template <bool OneChain>
    [[gnu::noinline]] void cut(int step, int game) {
        for (int part = 0; part < parts_; ++part) {
            const int chain = game * parts_ + part;
            if (!count_[chain]) continue;
            const int row = step * slots_ + slot_of(chain), seat = columns_.final_seat[row];
            if (seat >= 0 && (OneChain || seat == part)) {
                close_all(chain, step + 1, first_position_ + sizes_.final_positions() + row, checked(seat));
            } else {
                const Open newest = first_of(chain)[count_[chain] - 1];
                close_all(chain, step + 1, sizes_.position_of(newest.place), newest.seat);
            }
        }
    }

    // Rare, so it stays out of the loop that every ply goes through: a tenth of the time.
    [[gnu::noinline]] void close_all(int chain, int now, int next, int seat) {
        const Open* const first = first_of(chain);
        const Open* const last = first + count_[chain];
        for (const Open* open = first; open != last; ++open) close(*open, now, next, seat);
        count_[chain] = 0;
    }

    // The return goes on in a position in which `seat` acts; -1 where there is none.
    void close(const Open& open, int now, int next, int seat) {
        const double turned = open.seat == seat ? open.factor : -open.factor;
        links_.reward[open.place] = float(open.earned);
        links_.discount[open.place] = next < 0 ? 0 : float(turned);
        links_.next[open.place] = next;
        if (links_.plies) links_.plies[open.place] = open.plies + now;
        closed_[found_++] = open.place;
    }

    const SlabSizes sizes_;
    const LinkRule rule_;
    const SlabColumns columns_;
    const Links links_;
    OpenRows& out_;
    int* const closed_;
    const int slots_, parts_, first_place_, first_position_;
    std::vector<int> count_;
    std::vector<Open> open_;
    std::size_t found_ = 0;
};

}  // namespace

std::size_t follow(const SlabSizes& sizes, const LinkRule& rule, int slab, Stretch stretch, const SlabColumns& columns,
                   OpenRows& open, Links links, int* closed) {
    Follower follower(sizes, rule, slab, columns, open, links, closed);
    return rule.one_chain ? follower.follow<true>(stretch) : follower.follow<false>(stretch);
}

void estimate(const SlabSizes& sizes, const Links& links, const Valued& valued, const int* places, std::size_t count,
              float* advantages, float* returns) {
    const int in_slab = sizes.places();
    std::vector<float> corrections(in_slab, 0);  // v - V of the decisions whose advantage is known
    std::vector<float> fading(sizes.steps + 1);  // trace^plies
    for (int plies = 0; plies <= sizes.steps; ++plies) fading[plies] = float(std::pow(valued.trace, plies));
    const auto learn = [&](std::size_t i) {
        const int place = places[i], next = links.next[place], plies = links.plies[place];
        const float discount = links.discount[place], value = valued.value[sizes.position_of(place)];
        const float expected = links.reward[place] + (next < 0 ? 0 : discount * valued.value[next]);
        const float later = next >= 0 && next < in_slab ? corrections[next] : 0;
        const float faded = plies <= sizes.steps ? fading[plies] : float(std::pow(valued.trace, plies));
        const float delta = expected - value, trail = discount * faded * later;
        const float correction = valued.rho ? valued.rho[i] * delta + valued.c[i] * trail : delta + trail;
        if (place < in_slab) corrections[place] = correction;
        advantages[i] = valued.rho ? delta + discount * later : correction;
        returns[i] = correction + value;
    };
    // A link leads to a later decision of the slab. Those whose slab is gone come last, since nothing leads to them.
    const std::size_t here = std::lower_bound(places, places + count, in_slab) - places;
    for (std::size_t i = here; i-- > 0;) learn(i);
    for (std::size_t i = here; i < count; ++i) learn(i);
}

}  // namespace keisei
