// Draws legal actions from logits: mask, softmax and inverse transform in one pass over a row.
#pragma once

#include "types.h"

namespace keisei {

struct Exploration {
    float temperature;  // 0 takes the best action
    float epsilon;      // share of a uniform distribution over the legal actions
};

enum RowFault : int { NO_FAULT, NO_LEGAL_ACTION, NOT_FINITE };

// One row of a batch. `uniform` in [0, 1) picks the action. Writes it with its log-probability.
RowFault sample_row(const float* logits, const bool* legal, int actions, double uniform, Exploration exploration,
                    int& action, float& log_prob);

}  // namespace keisei
