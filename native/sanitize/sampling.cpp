// Draws of actions for the sanitizers.
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "sampling.h"
#include "sanitize/checks.h"
#include "sanitize/parts.h"

namespace keisei {

// Rows of every density and length, with numbers from tiny to huge, some of them none at all.
std::string draws() {
    Random random(11);
    int drawn = 0, refused = 0;
    for (int round = 0; round < 20000; ++round) {
        const int actions = 1 + random.below(300);
        std::vector<float> logits(actions);
        std::unique_ptr<bool[]> legal(new bool[actions]);
        const int density = random.below(101), size = random.below(40);
        for (int i = 0; i < actions; ++i) {
            logits[i] = float(random.below(2001) - 1000) * std::ldexp(1.0f, size - 20);
            legal[i] = random.below(100) < density;
        }
        if (random.below(10) == 0) logits[random.below(actions)] = std::numeric_limits<float>::quiet_NaN();
        const Exploration exploration{random.below(4) ? 0.5f * float(1 + random.below(4)) : 0.0f,
                                      random.below(3) ? 0.0f : float(random.below(11)) / 10};
        int action = -1;
        float log_prob = 1;
        const double uniform = double(random.below(1001)) / 1001;
        if (sample_row(logits.data(), legal.get(), actions, uniform, exploration, action, log_prob) != NO_FAULT) {
            ++refused;
            continue;
        }
        need(action >= 0 && action < actions && legal[action], "an illegal action was drawn");
        need(std::isfinite(log_prob) && log_prob < 1e-5f, "a probability is none");
        ++drawn;
    }
    need(drawn > 10000 && refused > 500, "nearly all rows are drawn from, or refused");
    return std::to_string(drawn) + " drawn, " + std::to_string(refused) + " refused";
}

}  // namespace keisei
