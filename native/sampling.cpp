#include "sampling.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace keisei {
namespace {

// What is drawn from: the legal entries of a row side by side; or, where many are legal, the whole row, in which
// the others will weigh nothing.
struct Entries {
    std::vector<int> index;  // of each entry in its row; unused for a whole row
    std::vector<float> weight;
    int size = 0;
    bool whole = false;
};

constexpr int WHOLE_FROM = 8;  // the whole row, where at least one in so many actions is legal

// exp for arguments of 0 and below, to some 2 units in the last place: 2^n from the exponent bits, 2^f from a
// polynomial (Cody and Waite's reduction). Plain arithmetic, so that compilers vectorise it and every build gives
// the same bits.
inline float exp_of_negative(float x) {
    x = x > -87.0f ? x : -87.0f;
    const int whole = int(x * 1.44269504f - 0.5f);  // to the nearest, since x is not above 0
    const float n = float(whole);
    const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    return p * std::bit_cast<float>((whole + 127) << 23);
}

int count_legal(const bool* legal, int actions) {
    const u8* const mask = reinterpret_cast<const u8*>(legal);
    int count = 0;
    for (int i = 0; i < actions; ++i) count += mask[i];
    return count;
}

// Masks are mostly empty in games with many actions: eight entries without a legal one are passed over at once.
void gather_few(const float* logits, const bool* legal, int actions, Entries& entries) {
    entries.index.resize(actions + 8);
    entries.weight.resize(actions + 8);
    int* const index = entries.index.data();
    float* const value = entries.weight.data();
    int size = 0, at = 0;
    for (; at + 8 <= actions; at += 8) {
        u64 eight;
        std::memcpy(&eight, legal + at, 8);
        if (!eight) continue;
        for (int i = at; i < at + 8; ++i) {
            index[size] = i;
            value[size] = logits[i];
            size += legal[i];
        }
    }
    for (; at < actions; ++at)
        if (legal[at]) {
            index[size] = at;
            value[size++] = logits[at];
        }
    entries.size = size;
    entries.whole = false;
}

void take_whole(const float* logits, const bool* legal, int actions, Entries& entries) {
    entries.weight.resize(actions + 8);
    float* const value = entries.weight.data();
    const u8* const mask = reinterpret_cast<const u8*>(legal);  // compilers make no vectors of bool
    for (int i = 0; i < actions; ++i) {
        const float logit = logits[i];
        value[i] = mask[i] != 0 ? logit : std::numeric_limits<float>::lowest();
    }
    entries.size = actions;
    entries.whole = true;
}

void silence_illegal(const bool* legal, int actions, float* weight) {
    const u8* const mask = reinterpret_cast<const u8*>(legal);
    for (int i = 0; i < actions; ++i) {
        const float kept = weight[i];
        weight[i] = mask[i] != 0 ? kept : 0.0f;
    }
}

// Bits of a float as an integer that is ordered as floats are, and back: compilers find the largest integer of
// many at once, but keep to the order of floats.
inline int ordered(int bits) { return bits ^ ((bits >> 31) & 0x7fffffff); }

// The largest number; false where one is no number or infinite.
bool find_highest(const float* value, int size, float& highest) {
    constexpr int exponent = 0x7f800000;
    int largest = ordered(std::bit_cast<int>(value[0])), fault = 0;
    for (int i = 0; i < size; ++i) {
        const int bits = std::bit_cast<int>(value[i]);
        largest = std::max(largest, ordered(bits));
        fault |= (bits & exponent) == exponent;
    }
    highest = std::bit_cast<float>(ordered(largest));
    return !fault;
}

// The weights of a row as they are summed: in blocks, so that the draw need not walk them one by one.
constexpr int BLOCK = 64;

double block_sum(const float* weight, int count) {
    float lane[8] = {};
    int i = 0;
    for (; i + 8 <= count; i += 8)
        for (int j = 0; j < 8; ++j) lane[j] += weight[i + j];
    for (; i < count; ++i) lane[i & 7] += weight[i];
    double sum = 0;
    for (const float part : lane) sum += part;
    return sum;
}

int draw(const float* weight, int size, double threshold) {
    int at = 0;
    double passed = 0;
    for (; at + BLOCK < size; at += BLOCK) {
        const double sum = block_sum(weight + at, BLOCK);
        if (passed + sum > threshold) break;
        passed += sum;
    }
    int last = -1;
    for (; at < size; ++at) {
        if (weight[at] <= 0) continue;
        last = at;
        passed += weight[at];
        if (passed > threshold) return at;
    }
    if (last >= 0) return last;  // rounding has carried the threshold past the end
    return int(std::max_element(weight, weight + size) - weight);
}

int nth_legal(const bool* legal, int n) {
    int at = 0;
    while (!legal[at] || n-- > 0) ++at;
    return at;
}

// From logits to weights: softmax without its division, or the best action alone at temperature 0.
void weigh(float* weight, int size, float highest, float temperature) {
    if (temperature == 0) {
        for (int i = 0; i < size; ++i) weight[i] = weight[i] == highest ? 1.0f : 0.0f;
        return;
    }
    const float sharpness = 1.0f / temperature;
    for (int i = 0; i < size; ++i) weight[i] = exp_of_negative((weight[i] - highest) * sharpness);
    // What hit the bound of exp_of_negative weighs nothing. (Within the first loop, this keeps it from being vectors.)
    for (int i = 0; i < size; ++i) weight[i] = weight[i] > 2e-38f ? weight[i] : 0.0f;
}

}  // namespace

RowFault sample_row(const float* logits, const bool* legal, int actions, double uniform, Exploration exploration,
                    int& action, float& log_prob) {
    thread_local Entries entries;
    const int count = count_legal(legal, actions);
    if (count == 0) return NO_LEGAL_ACTION;
    if (count * WHOLE_FROM >= actions) take_whole(logits, legal, actions, entries);
    else gather_few(logits, legal, actions, entries);
    const int size = entries.size;
    float* const weight = entries.weight.data();
    float highest;
    if (!find_highest(weight, size, highest)) return NOT_FINITE;
    weigh(weight, size, highest, exploration.temperature);
    if (entries.whole) silence_illegal(legal, size, weight);
    double total = 0;
    for (int at = 0; at < size; at += BLOCK) total += block_sum(weight + at, std::min(BLOCK, size - at));

    const double epsilon = exploration.epsilon;
    int chosen;
    if (uniform < epsilon) {
        const int n = std::min(count - 1, int(uniform / epsilon * count));
        chosen = entries.whole ? nth_legal(legal, n) : n;
    } else {
        const double rest = epsilon < 1 ? (uniform - epsilon) / (1 - epsilon) : 0;
        chosen = draw(weight, size, rest * total);
    }
    action = entries.whole ? chosen : entries.index[chosen];
    // From the logit rather than from its weight, which is rounded to a float.
    const double temperature = exploration.temperature, gap = double(logits[action]) - double(highest);
    const double score = temperature > 0 ? gap / temperature : gap < 0 ? -HUGE_VAL : 0;
    log_prob = float(epsilon > 0 ? std::log((1 - epsilon) * std::exp(score) / total + epsilon / count)
                                 : score - std::log(total));
    return NO_FAULT;
}

}  // namespace keisei
