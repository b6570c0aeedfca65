// A tree of sums, by which a place is drawn with a chance that is proportional to its priority.
#pragma once

#include <cstddef>
#include <vector>

#include "types.h"

namespace keisei {

// Each sum is the sum of its parts, added in order whenever one of them changes. So all sums depend on the priorities
// alone, and not on how they came about.
class SumTree {
  public:
    explicit SumTree(std::size_t places);

    std::size_t places() const { return places_; }
    double total() const;
    std::size_t nbytes() const;
    float priority(int place) const { return priorities_[place]; }

    // Where a place is named twice, the last one counts.
    void set(const int* places, const float* priorities, std::size_t count);

    // Sets the priorities of neighbouring places to 0.
    void clear(std::size_t first, std::size_t count);

    // One place from each of `size` equal shares of the total. The total is above 0.
    void draw(u64 seed, u64 key, int* places, std::size_t size) const;

  private:
    void add_up(std::vector<std::size_t>& changed);
    int find(double at) const;

    std::size_t places_;
    std::vector<float> priorities_;
    std::vector<std::vector<double>> sums_;  // level by level; the last one has a single number
};

}  // namespace keisei
