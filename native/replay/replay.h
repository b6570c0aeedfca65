// The rows of a replay's samples, and which of its decisions may be drawn.
#pragma once

#include <cstddef>

#include "links/links.h"

namespace keisei {

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
void gather_sample(const SlabSizes& sizes, int packed_bytes, const SlabAddresses& addresses, const Links& links,
                   const int* places, std::size_t count, SampleRows out);

// Adds places to those that may be drawn: slab k has count[k] of them. If `listed` is not null, they are listed there
// from listed[k · places_of_a_slab] on, counted from the first place of the slab. Throws std::out_of_range where a slab
// has no more.
void add_places(const int* places, std::size_t size, int places_of_a_slab, int* count, int* listed);

// Draws places with equal chances from those that add_places has listed.
void draw_equally(u64 seed, u64 key, const int* count, const int* listed, std::size_t slabs, int places_of_a_slab,
                  int* drawn, std::size_t size);

}  // namespace keisei
