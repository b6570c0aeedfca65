// Counter-based randomness: the same function as keisei/games/randomness.py.
#pragma once

#include <initializer_list>

#include "types.h"

namespace keisei {

constexpr u64 GOLDEN = 0x9E3779B97F4A7C15;

// What a number is used for.
constexpr u64 RESET_STREAM = 1;
constexpr u64 CHANCE_STREAM = 2;
constexpr u64 RANDOM_ACTION_STREAM = 3;

// The finaliser of SplitMix64 (Steele, Lea and Flood, 2014).
constexpr u64 mix(u64 w) {
    w = (w ^ (w >> 30)) * 0xBF58476D1CE4E5B9;
    w = (w ^ (w >> 27)) * 0x94D049BB133111EB;
    return w ^ (w >> 31);
}

// A key is taken in part by part, and many keys may begin with the same parts.
constexpr u64 absorb(u64 word, std::initializer_list<u64> parts) {
    for (const u64 part : parts) word = mix((word + GOLDEN) ^ part);
    return word;
}
constexpr u64 finish(u64 word) { return mix(word + GOLDEN); }

constexpr u64 keyed_word(std::initializer_list<u64> key) { return finish(absorb(0, key)); }

// A whole number in 0 … limit-1: the upper half of word * limit, which has 96 bits at most.
constexpr u64 below(u64 word, u32 limit) {
    return ((word >> 32) * limit + ((word & 0xffffffff) * limit >> 32)) >> 32;
}

// A number in [0, 1) with 53 random bits.
constexpr double to_uniform(u64 word) { return double(word >> 11) * 0x1p-53; }

}  // namespace keisei
