// The core on its own, without Python, for the sanitizers: it plays, packs, saves and reads damaged bytes
// with buffers of exactly the right size. `make sanitize` builds and runs it. A wrong result is a failure too.
#include <cstdio>
#include <exception>
#include <string>

#include "sanitize/parts.h"

namespace keisei {
namespace {

struct Part {
    const char* name;
    std::string (*run)();
};

const Part PARTS[] = {
    {"perft", perfts},
    {"playouts with all outputs", playouts},
    {"moves taken back", taking_back},
    {"random bytes as packed positions", random_bytes},
    {"packed positions with flipped bits", flipped_bits},
    {"boards of any codes", any_boards},
    {"damaged saved states", damaged_states},
    {"actions drawn from logits", draws},
    {"searches beside a plain one", searches},
    {"games of Ludo with all outputs", ludo_games},
    {"damaged rows and states of Ludo", damaged_ludo},
    {"rollouts and replays of random slabs", rollouts_and_replays},
};

}  // namespace
}  // namespace keisei

int main() {
    int passed = 0, failed = 0;
    for (const keisei::Part& part : keisei::PARTS) {
        try {
            const std::string told = part.run();
            std::printf("%s: %s\n", part.name, told.c_str());
            ++passed;
        } catch (const std::exception& error) {
            std::printf("%s: FAILED: %s\n", part.name, error.what());
            ++failed;
        }
        std::fflush(stdout);
    }
    std::printf("%d passed, %d failed\n", passed, failed);
    return failed ? 1 : 0;
}
