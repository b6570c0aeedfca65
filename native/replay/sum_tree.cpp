#include "replay/sum_tree.h"

#include <algorithm>
#include <numeric>

#include "randomness.h"

namespace keisei {
namespace {

// The parts of a sum fill a cache line.
constexpr std::size_t PRIORITIES = 16, SUMS = 8;

std::size_t groups(std::size_t parts, std::size_t size) { return (parts + size - 1) / size; }

// In four sums that are then added, always in this order, so that every build rounds alike.
template <std::size_t Size, typename Number>
double sum(const Number* parts) {
    double sums[4] = {};
    for (std::size_t i = 0; i < Size; i += 4)
        for (std::size_t j = 0; j < 4; ++j) sums[j] += double(parts[i + j]);
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// Finds the part that `at` is in, and takes from `at` what is before it. There is no branch to guess wrong, which would
// take longer than the sums. Rounding may lead past the last part: then the last that is not 0 is taken.
template <std::size_t Size, typename Number>
std::size_t descend(const Number* parts, double& at) {
    std::size_t found = 0;
    double sum = 0, before = 0;
    for (std::size_t i = 0; i < Size; ++i) {
        sum += double(parts[i]);
        const bool is_past = at >= sum;
        found += is_past;
        before = is_past ? sum : before;
    }
    if (found < Size) {
        at -= before;
        return found;
    }
    while (found > 1 && !(parts[found - 1] > 0)) --found;
    at = double(parts[found - 1]);
    return found - 1;
}

}  // namespace

SumTree::SumTree(std::size_t places) : places_(places), priorities_(groups(places, PRIORITIES) * PRIORITIES) {
    std::size_t size = groups(places, PRIORITIES);
    while (size > 1) {
        sums_.emplace_back(groups(size, SUMS) * SUMS);
        size = groups(size, SUMS);
    }
    sums_.emplace_back(1);
}

double SumTree::total() const { return sums_.back()[0]; }

std::size_t SumTree::nbytes() const {
    std::size_t total = priorities_.size() * sizeof(float);
    for (const std::vector<double>& level : sums_) total += level.size() * sizeof(double);
    return total;
}

void SumTree::set(const int* places, const float* priorities, std::size_t count) {
    std::vector<std::size_t> changed;
    for (std::size_t i = 0; i < count; ++i) {
        priorities_[places[i]] = priorities[i];
        const std::size_t group = std::size_t(places[i]) / PRIORITIES;
        if (changed.empty() || changed.back() != group) changed.push_back(group);
    }
    add_up(changed);
}

void SumTree::clear(std::size_t first, std::size_t count) {
    if (!count) return;
    std::fill_n(priorities_.begin() + std::ptrdiff_t(first), count, 0.0f);
    std::vector<std::size_t> changed(groups(first + count, PRIORITIES) - first / PRIORITIES);
    std::iota(changed.begin(), changed.end(), first / PRIORITIES);
    add_up(changed);
}

// Adds up the groups of priorities that have changed, and then level by level the sums above them.
void SumTree::add_up(std::vector<std::size_t>& changed) {
    for (const std::size_t group : changed)
        sums_[0][group] = sum<PRIORITIES>(&priorities_[group * PRIORITIES]);
    for (std::size_t level = 1; level < sums_.size(); ++level) {
        std::size_t kept = 0;
        for (const std::size_t part : changed) {
            const std::size_t group = part / SUMS;
            if (!kept || changed[kept - 1] != group) changed[kept++] = group;
        }
        changed.resize(kept);
        for (const std::size_t group : changed) sums_[level][group] = sum<SUMS>(&sums_[level - 1][group * SUMS]);
    }
}

int SumTree::find(double at) const {
    std::size_t group = 0;
    for (std::size_t level = sums_.size() - 1; level-- > 0;)
        group = group * SUMS + descend<SUMS>(&sums_[level][group * SUMS], at);
    return int(group * PRIORITIES + descend<PRIORITIES>(&priorities_[group * PRIORITIES], at));
}

void SumTree::draw(u64 seed, u64 key, int* places, std::size_t size) const {
    const double share = total() / double(size);
    const KeyedUniforms uniforms({seed, key});
    for (std::size_t i = 0; i < size; ++i) places[i] = find((double(i) + uniforms[i]) * share);
}

}  // namespace keisei
