// What the parts of the sanitized program share.
#pragma once

#include <stdexcept>
#include <string>

#include "randomness.h"

namespace keisei {

struct Failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

inline void need(bool holds, const char* rule) {
    if (!holds) throw Failure(rule);
}

class Random {
  public:
    explicit Random(u64 seed) : seed_(seed) {}
    u64 word() { return keyed_word({seed_, ++draws_}); }
    int below(int limit) { return int((word() >> 32) * u64(limit) >> 32); }

  private:
    u64 seed_, draws_ = 0;
};

}  // namespace keisei
