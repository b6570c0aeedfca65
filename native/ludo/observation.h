// What the seat to move sees of a game of Ludo, as bytes. The table is in docs/games/ludo.md.
#pragma once

#include <vector>

#include "ludo/position.h"

namespace keisei::ludo {

constexpr int PLACES = HOME - YARD + 1;           // where a token can stand, as its owner counts
constexpr int COLUMN = HOME - 1 - LAST_ON_LOOP;   // squares of a home column
constexpr int ENEMY_BYTES = 1 + LOOP + COLUMN + 2;  // in the yard, on the loop, in the column, home, progress

// The places of the parts of an observation.
struct Layout {
    // Between two, the enemy sits opposite; else an enemy may sit at each of the other corners.
    explicit Layout(const Rules& rules) : enemies(rules.seats == 2 ? 1 : 3) {}

    int enemies;
    int own_places() const { return 0; }                             // [token][place]
    int own_progress() const { return TOKENS * PLACES; }             // [token]
    int own_dangers() const { return own_progress() + TOKENS; }      // [token]
    int own_targets() const { return own_dangers() + TOKENS; }       // [token]
    int enemy(int index) const { return own_targets() + TOKENS + ENEMY_BYTES * index; }
    int dice() const { return enemy(enemies); }                      // [value]
    int legal() const { return dice() + VALUES; }                    // [action], and so are the others
    int captures() const { return legal() + ACTIONS; }
    int becomes_safe() const { return captures() + ACTIONS; }
    int dangers() const { return becomes_safe() + ACTIONS; }
    int targets() const { return dangers() + ACTIONS; }
    int bytes() const { return targets() + ACTIONS; }
};

void write_observation(const Position& p, const Rules& rules, u32 legal, u8* out);

// A factor for each byte, which brings its largest usual value near 1.
std::vector<float> observation_scale(const Rules& rules);

}  // namespace keisei::ludo
