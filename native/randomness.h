// Counter-based randomness: the same function as keisei/games/randomness.py.
#pragma once

#include <initializer_list>

#include "types.h"

namespace keisei {

constexpr u64 GOLDEN = 0x9E3779B97F4A7C15;
constexpr u64 RANDOM_ACTION_STREAM = 3;

// The finaliser of SplitMix64 (Steele, Lea and Flood, 2014).
constexpr u64 mix(u64 w) {
    w = (w ^ (w >> 30)) * 0xBF58476D1CE4E5B9;
    w = (w ^ (w >> 27)) * 0x94D049BB133111EB;
    return w ^ (w >> 31);
}

constexpr u64 keyed_word(std::initializer_list<u64> key) {
    u64 word = 0;
    for (const u64 part : key) word = mix((word + GOLDEN) ^ part);
    return mix(word + GOLDEN);
}

// A number in [0, 1) with 53 random bits.
constexpr double to_uniform(u64 word) { return double(word >> 11) * 0x1p-53; }

// One number in [0, 1) for each i: to_uniform(keyed_word({…key, i})).
class KeyedUniforms {
  public:
    constexpr KeyedUniforms(std::initializer_list<u64> key) {
        for (const u64 part : key) word_ = mix((word_ + GOLDEN) ^ part);
    }
    constexpr double operator[](u64 i) const { return to_uniform(mix(mix((word_ + GOLDEN) ^ i) + GOLDEN)); }

  private:
    u64 word_ = 0;
};

}  // namespace keisei
