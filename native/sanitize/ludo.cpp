// Ludo for the sanitizers.
#include <cmath>
#include <memory>
#include <vector>

#include "ludo/batch.h"
#include "ludo/observation.h"
#include "sanitize/checks.h"
#include "sanitize/parts.h"

namespace keisei {
namespace {

using ludo::ACTIONS, ludo::Batch, ludo::Layout, ludo::Options;

// A batch with all the memory that its methods write to.
struct Arena {
    explicit Arena(Batch& b)
        : batch(b), n(b.size()), seats(b.rules().seats), bytes(Layout(b.rules()).bytes()),
          packed_bytes(b.rules().packed_bytes()), seat(n), episode(n), ply(n), games(n), actions(n), chosen(n), plies(n),
          final_game(n), final_seat(n), observations(std::size_t(n) * bytes), packed(n * packed_bytes),
          final_packed(n * packed_bytes), ending(n), rewards(seats * n), scores(seats * n), keys(n),
          legal(new bool[n * ACTIONS]), terminated(new bool[n]), truncated(new bool[n]) {
        for (int i = 0; i < n; ++i) games[i] = i, keys[i] = mix(u64(i));
    }

    void read() {
        batch.rows(seat.data(), episode.data(), ply.data());
        batch.observe(observations.data());
        batch.legal(legal.get());
        batch.pack(packed.data());
        batch.random_actions(actions.data());
        batch.heuristic_actions(games.data(), n, keys.data(), chosen.data());
    }
    int step() {
        return batch.step(actions.data(), {rewards.data(), terminated.get(), truncated.get(), ending.data(),
                                           scores.data(), plies.data(), final_game.data(), final_seat.data(),
                                           final_packed.data()});
    }

    Batch& batch;
    int n, seats, bytes, packed_bytes;
    std::vector<int> seat, episode, ply, games, actions, chosen, plies, final_game, final_seat;
    std::vector<u8> observations, packed, final_packed, ending;
    std::vector<float> rewards, scores;
    std::vector<u64> keys;
    std::unique_ptr<bool[]> legal, terminated, truncated;
};

void need_sound_rows(Arena& arena) {
    std::vector<u8> seen(arena.observations.size());
    std::unique_ptr<bool[]> mask(new bool[arena.n * ACTIONS]);
    need(arena.batch.expand(arena.packed.data(), arena.n, seen.data(), mask.get()) < 0, "a packed row is refused");
    need(seen == arena.observations, "unpacking gives another observation");
    for (int i = 0; i < arena.n; ++i) {
        const bool* const legal = arena.legal.get() + i * ACTIONS;
        for (int action = 0; action < ACTIONS; ++action)
            need(legal[action] == mask[i * ACTIONS + action], "unpacking gives another mask");
        need(legal[arena.actions[i]] && legal[arena.chosen[i]], "a player's action is not legal");
    }
}

void need_refusal(Arena& arena, int row) {
    const std::string before = arena.batch.save();
    const int good = arena.actions[row];
    int illegal = 0;
    while (arena.legal[row * ACTIONS + illegal]) ++illegal;
    for (const int bad : {illegal, -1, int(ACTIONS), good + 0x10000}) {
        arena.actions[row] = bad;
        need(arena.step() == -1 - row && arena.batch.save() == before, "an illegal action was not refused whole");
    }
    arena.actions[row] = good;
}

const Options SETTINGS[] = {
    {{2, false, true}, 0, {}},
    {{2, true, false}, 100, {1, 0.5, 0.25, 2, 0.5, 0.99, true, false}},
    {{3, true, true}, 0, {0, 0, 1, 0, 1, 1, true, true}},
    {{4, false, true}, 400, {1, 1, 1, 1, 1, 0.9, true, false}},
    {{4, true, false}, 1, {}},
};

}  // namespace

std::string ludo_games() {
    long games = 0, steps = 0;
    for (const Options& options : SETTINGS) {
        Batch batch(20, 7, 3, options), other(20, 8, 0, options);
        Arena arena(batch);
        for (int i = 0; i < 1500; ++i, steps += arena.n) {
            arena.read();
            need_sound_rows(arena);
            if (i % 16 == 0) {
                need_refusal(arena, i / 16 % arena.n);
                need(other.load(batch.save()) && other.save() == batch.save(), "a saved state is not taken up");
            }
            if (i % 3 == 0) arena.actions = arena.chosen;
            const int finished = arena.step();
            need(finished >= 0, "a legal step was refused");
            for (int game = 0; game < arena.n; ++game) {
                float sum = 0;
                for (int seat = 0; seat < arena.seats; ++seat) sum += arena.rewards[arena.seats * game + seat];
                need(std::abs(sum) < 1e-4f, "the rewards do not add up to nothing");
            }
            games += finished;
        }
    }
    need(games > 1000, "too few games came to an end");
    return std::to_string(games) + " games, " + std::to_string(steps) + " steps";
}

std::string damaged_ludo() {
    Random random(17);
    int tried = 0, refused = 0;
    for (const Options& options : SETTINGS) {
        Batch batch(3, 1, 0, options);
        Arena arena(batch);
        for (int i = 0; i < 200; ++i) {
            arena.read();
            const std::string blob = batch.save();
            std::string damaged = blob;
            for (int flips = 1 + random.below(3); flips; --flips) {
                char& byte = damaged[random.below(int(damaged.size()))];
                byte = char(byte ^ 1 << random.below(8));
            }
            for (const std::string& state : {damaged, blob.substr(0, random.below(int(blob.size()))), blob + "x"}) {
                ++tried;
                if (batch.load(state)) {
                    need(batch.save() == state && batch.load(blob), "a state that was taken up is saved otherwise");
                } else {
                    ++refused;
                    need(batch.save() == blob, "a refused state changed the games");
                }
            }
            for (u8& byte : arena.packed) byte = random.below(8) ? byte : u8(random.word());
            batch.expand(arena.packed.data(), arena.n, arena.observations.data(), arena.legal.get());
            arena.read();
            arena.step();
        }
    }
    need(refused > tried / 2 && refused < tried, "damaged states are nearly all taken up, or all refused");
    return std::to_string(tried) + " tried, " + std::to_string(refused) + " refused";
}

}  // namespace keisei
