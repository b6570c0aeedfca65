#include "replay/replay.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "randomness.h"

namespace keisei {
namespace {

constexpr std::size_t BLOCK = 32;  // rows that are asked for before the first is copied, since they lie anywhere

}  // namespace

void gather_sample(const SlabSizes& sizes, int packed_bytes, const SlabAddresses& addresses, const Links& links,
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
            rows[2 * i + 1] = row_of(links.next[place]);
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
            out.reward[at] = links.reward[place];
            out.discount[at] = links.discount[place];
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
