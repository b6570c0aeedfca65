// A replay's work on whole slabs: what came of each decision, and the rows of a sample.
#pragma once

#include <cstddef>

#include "types.h"

namespace keisei {

// The sizes of a slab, which number what it holds. Slab k of a ring has
//  - places k · places() …: its decisions, step by step and slot by slot;
//  - positions k · positions() …: what seats saw, first at its decisions in the same order, then at its end, then the
//    last positions of truncated games, step by step and slot by slot.
struct SlabSizes {
    int steps, games, seats;
    bool simultaneous;

    int slots() const { return simultaneous ? games * seats : games; }
    int places() const { return steps * slots(); }
    int positions() const { return (2 * steps + 1) * slots(); }
    int final_positions() const { return (steps + 1) * slots(); }  // where they begin
    int position_of(int place) const { return place / places() * positions() + place % places(); }
};

// How decisions are credited. In a zero-sum game of two, the decisions of both seats may make one chain; else each
// seat's decisions make a chain of their own.
struct ReturnRule {
    int n_step;       // decisions of the chain until the target bootstraps
    double discount;  // per ply
    int owner;        // whose decisions count; those of others are part of the environment
    bool one_chain;

    int chains(const SlabSizes& sizes) const { return sizes.games * chains_of_a_game(sizes); }
    int chains_of_a_game(const SlabSizes& sizes) const { return one_chain ? 1 : sizes.seats; }
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

// The decisions of a table whose outcome is not known yet: for each chain up to n_step, oldest first.
struct OpenDecisions {
    int* count;      // [chains]
    int* place;      // [chains, n_step], as are the next
    int* seat;
    double* earned;  // the seat's rewards since the decision, discounted to it
    double* factor;  // discount^plies since the decision
};

// What came of decisions, by place, for all slabs of a ring.
struct Outcomes {
    float* reward;
    float* discount;  // negative where the other seat of a zero-sum game acts in the next position, 0 after the end
    int* next;        // the next position; -1 after the end
};

// Follows the games through slab number `slab`: closes decisions whose outcome it tells, and opens its own. Writes the
// places that were closed, at most places() + chains · n_step, and gives how many. Throws std::out_of_range where a
// seat is none of the game.
std::size_t follow(const SlabSizes& sizes, const ReturnRule& rule, int slab, const SlabColumns& columns,
                   OpenDecisions open, Outcomes outcomes, int* closed);

// Where the rows of each slab lie in memory.
struct SlabAddresses {
    const u64* packed;
    const u64* final_packed;
    const u64* action;
};

struct SampleRows {
    u8* packed;
    u8* next_packed;
    int* action;
    float* reward;
    float* discount;
};

// Copies the decisions at some places. A next position after the end is all 0.
void gather_sample(const SlabSizes& sizes, int packed_bytes, const SlabAddresses& addresses, Outcomes outcomes,
                   const int* places, std::size_t count, SampleRows out);

// Adds places to those that may be drawn: slab k has count[k] of them. If `listed` is not null, they are listed there
// from listed[k · places_of_a_slab] on, counted from the first place of the slab. Throws std::out_of_range where a slab
// has no more.
void add_places(const int* places, std::size_t size, int places_of_a_slab, int* count, int* listed);

// Draws places with equal chances from those that add_places has listed.
void draw_equally(u64 seed, u64 key, const int* count, const int* listed, std::size_t slabs, int places_of_a_slab,
                  int* drawn, std::size_t size);

}  // namespace keisei
