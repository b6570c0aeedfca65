// Links: what came of each decision of a slab. One pass makes them, for rollouts and for replays.
#pragma once

#include <cstddef>

#include "types.h"

namespace keisei {

// The sizes of slabs, which number what they hold. Slab k has
//  - places k · places() …: its decisions, step by step and slot by slot;
//  - positions k · positions() …: what seats saw, first at its decisions in the same order, then at its end, then the
//    last positions of truncated games, step by step and slot by slot.
// Decisions whose slab is gone have the places and positions after those of all slabs.
struct SlabSizes {
    int slabs, steps, games, seats;
    bool simultaneous;

    int slots() const { return simultaneous ? games * seats : games; }
    int places() const { return steps * slots(); }
    int positions() const { return (2 * steps + 1) * slots(); }
    int final_positions() const { return (steps + 1) * slots(); }  // where they begin
    int all_places() const { return slabs * places(); }
    int all_positions() const { return slabs * positions(); }
    int position_of(int place) const {
        if (place >= all_places()) return all_positions() + (place - all_places());
        return place / places() * positions() + place % places();
    }
};

// How decisions are linked. In a zero-sum game of two, the decisions of both seats may make one chain; else each
// seat's decisions make a chain of their own.
struct LinkRule {
    int n_step;       // decisions of the chain from one to where its return goes on
    double discount;  // per ply
    int owner;        // whose decisions count; those of others are part of the environment
    bool one_chain;

    int chains_of_a_game(const SlabSizes& sizes) const { return one_chain ? 1 : sizes.seats; }
    int chains(const SlabSizes& sizes) const { return sizes.games * chains_of_a_game(sizes); }
    std::size_t most_open(const SlabSizes& sizes) const { return std::size_t(chains(sizes)) * n_step; }
};

// Columns of a slab, as in keisei/experience/schema.py.
struct SlabColumns {
    const bool* acting;
    const signed char* seat;
    const short* owner;
    const float* reward;
    const bool* terminated;
    const bool* truncated;
    const signed char* final_seat;
};

// A decision whose link is open. ROW in keisei/experience/links.py has the same fields.
struct Open {
    int chain, place, seat;
    int plies;      // since the decision
    double earned;  // the seat's rewards since then, discounted to it
    double factor;  // discount^plies
};

// The open decisions of a table, in any order of chains, each chain's oldest first.
struct OpenRows {
    Open* rows;  // room for most_open()
    std::size_t count;
};

// What came of decisions, by place.
struct Links {
    float* reward;    // until the return goes on, discounted
    float* discount;  // discount^plies; negative where the other seat of a chain acts there, 0 after the end
    int* next;        // the position where the return goes on; -1 after the end
    int* plies;       // until then; may be null
};

// What of a slab is followed. At its end, links are closed whose chain acts there: their returns go on there.
struct Stretch {
    bool games, end;
};

// Follows the games of a table through slab number `slab`: closes links, and opens those of its decisions. Writes the
// places of closed ones, at most places() + most_open(), and gives how many. Throws std::out_of_range for numbers that
// are none of the game.
std::size_t follow(const SlabSizes& sizes, const LinkRule& rule, int slab, Stretch stretch, const SlabColumns& columns,
                   OpenRows& open, Links links, int* closed);

// What an estimate needs beside links of one decision each (n_step = 1), all of one slab and of decisions whose slab is
// gone.
struct Valued {
    const float* value;  // by position
    const float* rho;    // V-trace's clipped ratios, one for each decision that is estimated; null for GAE
    const float* c;
    double trace;
};

// Estimates advantages and returns of decisions by GAE or V-trace (keisei/experience/advantages.py). Their `places`
// are in order, and no other decision has an advantage.
void estimate(const SlabSizes& sizes, const Links& links, const Valued& valued, const int* places, std::size_t count,
              float* advantages, float* returns);

}  // namespace keisei
