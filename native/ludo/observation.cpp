#include "ludo/observation.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace keisei::ludo {
namespace {

// The corner of a seat, in quarters of the loop from the seat to move.
int quarters_ahead(const Position& p, const Rules& rules, int seat) {
    return (rules.corner(seat) - rules.corner(p.turn) + MAX_SEATS) % MAX_SEATS;
}

void write_own(const Position& p, const Layout& layout, const Enemies& enemies, u8* out) {
    for (int token = 0; token < TOKENS; ++token) {
        const int position = p.tokens[p.turn][token];
        out[layout.own_places() + PLACES * token + position - YARD] = 1;
        out[layout.own_progress() + token] = u8(position - YARD);
        out[layout.own_dangers() + token] = u8(enemies.dangers(position));
        out[layout.own_targets() + token] = u8(enemies.targets(position));
    }
}

// The tokens of an enemy, on the loop as the seat to move counts it.
void write_enemy(const Position& p, const Rules& rules, int seat, u8* out) {
    u8* const yard = out;
    u8* const loop = yard + 1;
    u8* const column = loop + LOOP;
    u8* const home = column + COLUMN;
    u8* const progress = home + 1;
    for (const int position : p.tokens[seat]) {
        if (position == YARD) ++*yard;
        else if (position == HOME) ++*home;
        else if (is_on_loop(position)) ++loop[(position + QUARTER * quarters_ahead(p, rules, seat)) % LOOP];
        else ++column[position - LAST_ON_LOOP - 1];
        *progress = u8(*progress + position - YARD);
    }
}

void write_actions(const Position& p, const Rules& rules, const Layout& layout, const Enemies& enemies, u32 legal,
                   u8* out) {
    for (; legal; legal &= legal - 1) {
        const int action = std::countr_zero(legal);
        const int to = after_move(p.tokens[p.turn][token_of(action)], value_of(action));
        out[layout.legal() + action] = 1;
        out[layout.captures() + action] = enemies.is_met(to);
        out[layout.becomes_safe() + action] = rules.is_safe(p.turn, to);
        out[layout.dangers() + action] = u8(enemies.dangers(to));
        out[layout.targets() + action] = u8(enemies.targets(to));
    }
}

}  // namespace

void write_observation(const Position& p, const Rules& rules, u32 legal, u8* out) {
    const Layout layout(rules);
    const Enemies enemies(p, rules);
    std::memset(out, 0, layout.bytes());
    write_own(p, layout, enemies, out);
    for (int seat = 0; seat < rules.seats; ++seat) {
        if (seat == p.turn) continue;
        const int index = rules.seats == 2 ? 0 : quarters_ahead(p, rules, seat) - 1;
        write_enemy(p, rules, seat, out + layout.enemy(index));
    }
    std::memcpy(out + layout.dice(), p.dice, VALUES);
    write_actions(p, rules, layout, enemies, legal, out);
}

std::vector<float> observation_scale(const Rules& rules) {
    const Layout layout(rules);
    std::vector<float> scale(layout.bytes(), 1.0f);
    const auto fill = [&](int first, int count, float factor) { std::fill_n(scale.begin() + first, count, factor); };
    fill(layout.own_progress(), TOKENS, 1.0f / (PLACES - 1));
    fill(layout.own_dangers(), TOKENS, 1.0f / 2);
    fill(layout.own_targets(), TOKENS, 1.0f / 2);
    for (int index = 0; index < layout.enemies; ++index) {
        fill(layout.enemy(index), 1, 1.0f / TOKENS);
        fill(layout.enemy(index) + ENEMY_BYTES - 2, 1, 1.0f / TOKENS);
        fill(layout.enemy(index) + ENEMY_BYTES - 1, 1, 1.0f / (TOKENS * (PLACES - 1)));
    }
    fill(layout.dice(), VALUES, 1.0f / 2);
    fill(layout.dangers(), ACTIONS, 1.0f / 2);
    fill(layout.targets(), ACTIONS, 1.0f / 2);
    return scale;
}

}  // namespace keisei::ludo
