#include "ludo/position.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace keisei::ludo {
namespace {

// A six rolls again, up to three dice. Three sixes bring nothing.
void roll(Position& p, Dice& dice) {
    int sixes = 0, value = dice.roll();
    for (; value == 6; value = dice.roll())
        if (++sixes == 3) return;
    p.dice[5] = u8(p.dice[5] + sixes);
    ++p.dice[value - 1];
}

// Passes the turn on until the seat to move can play a die.
void pass_on(Position& p, const Rules& rules, Dice& dice) {
    while (!legal_actions(p, rules)) {
        std::memset(p.dice, 0, sizeof p.dice);
        p.turn = i8((p.turn + 1) % rules.seats);
        roll(p, dice);
    }
}

// The squares on which an enemy of the seat to move has two tokens or more, as bits.
u64 blocked_squares(const Position& p, const Rules& rules) {
    u64 blocked = 0;
    for (int seat = 0; seat < rules.seats; ++seat) {
        if (seat == p.turn) continue;
        u64 taken = 0;
        for (const int position : p.tokens[seat]) {
            if (!is_on_loop(position)) continue;
            const u64 square = u64(1) << rules.square(seat, position);
            blocked |= taken & square;
            taken |= square;
        }
    }
    return blocked;
}

bool can_move(const Position& p, const Rules& rules, int position, int value, u64 blocked) {
    if (position == YARD && value != 6) return false;
    const int to = after_move(position, value);
    if (to > HOME) return false;
    if (!blocked) return true;
    const int first = position == YARD ? START : position + 1;
    for (int at = first; at <= to && at <= LAST_ON_LOOP; ++at)
        if (blocked >> rules.square(p.turn, at) & 1) return false;
    return true;
}

}  // namespace

Position first_position(const Rules& rules, Dice& dice) {
    Position p;
    std::memset(p.tokens, YARD, sizeof p.tokens);
    std::memset(p.dice, 0, sizeof p.dice);
    p.turn = 0;
    roll(p, dice);
    pass_on(p, rules, dice);
    return p;
}

u32 legal_actions(const Position& p, const Rules& rules) {
    const u64 blocked = rules.blocks ? blocked_squares(p, rules) : 0;
    u32 legal = 0;
    for (int value = 1; value <= VALUES; ++value) {
        if (!p.dice[value - 1]) continue;
        for (int token = 0; token < TOKENS; ++token)
            if (can_move(p, rules, p.tokens[p.turn][token], value, blocked))
                legal |= u32(1) << (TOKENS * (value - 1) + token);
    }
    return legal;
}

bool play(Position& p, const Rules& rules, int action, Dice& dice) {
    --p.dice[value_of(action) - 1];
    i8& token = p.tokens[p.turn][token_of(action)];
    token = i8(after_move(token, value_of(action)));
    const Victim victim = victim_at(p, rules, token);
    const bool captured = victim.seat >= 0;
    if (captured) p.tokens[victim.seat][victim.token] = YARD;
    if (p.is_won(p.turn)) return captured;
    if (token == HOME || (captured && rules.capture_rolls)) roll(p, dice);
    pass_on(p, rules, dice);
    return captured;
}

void Position::pack(const Rules& rules, u8* out) const {
    *out++ = u8(turn);
    std::memcpy(out, dice, VALUES);
    out += VALUES;
    for (int seat = 0; seat < rules.seats; ++seat)
        for (const int position : tokens[seat]) *out++ = u8(position + 1);
}

bool Position::unpack(const Rules& rules, const u8* in) {
    if (*in >= rules.seats) return false;
    turn = i8(*in++);
    int count = 0;
    for (u8& number : dice) {
        number = *in++;
        count += number;
    }
    if (count > MOST_DICE) return false;
    std::memset(tokens, YARD, sizeof tokens);
    for (int seat = 0; seat < rules.seats; ++seat) {
        for (i8& token : tokens[seat]) {
            if (*in > HOME + 1) return false;
            token = i8(*in++ - 1);
        }
        if (seat != turn && is_won(seat)) return false;
    }
    return is_won(turn) || legal_actions(*this, rules);
}

Victim victim_at(const Position& p, const Rules& rules, int position) {
    if (!is_on_loop(position) || rules.is_safe(p.turn, position)) return {};
    const int square = rules.square(p.turn, position);
    for (int step = 1; step < rules.seats; ++step) {
        const int seat = (p.turn + step) % rules.seats;
        for (int token = 0; token < TOKENS; ++token) {
            const int there = p.tokens[seat][token];
            if (is_on_loop(there) && rules.square(seat, there) == square) return {seat, token};
        }
    }
    return {};
}

Enemies::Enemies(const Position& p, const Rules& rules) {
    const int start = rules.square(p.turn, START);
    for (int seat = 0; seat < rules.seats; ++seat) {
        if (seat == p.turn) continue;
        for (const int position : p.tokens[seat]) {
            if (!is_on_loop(position)) continue;
            const int square = (rules.square(seat, position) - start + LOOP) % LOOP;
            there_[count_] = square;
            reach_[count_] = std::min(VALUES, LAST_ON_LOOP - position);
            open_[count_++] = is_on_loop(square) && !is_safe(square) ? square : NOWHERE;
        }
    }
}

// The heuristic player. Everything is counted in sixths of a square.
namespace {

constexpr int SQUARE = 6;
constexpr int LEAVES_YARD = 20 * SQUARE, COMES_HOME = 20 * SQUARE, CAPTURES = 20 * SQUARE, IS_SAFE = 3 * SQUARE;
constexpr int TO_LEAVE_AGAIN = 10;  // squares that a captured token loses beside its way

int worth(const Position& p, const Rules& rules, const Enemies& enemies, int action) {
    const int seat = p.turn, from = p.tokens[seat][token_of(action)], to = after_move(from, value_of(action));
    // An enemy token behind captures with one die in six.
    const auto risk = [&](int position) { return enemies.dangers(position) * (position + TO_LEAVE_AGAIN); };
    int sum = SQUARE * (to - from) + risk(from) - risk(to);
    if (from == YARD) sum += LEAVES_YARD;
    else sum += from / 3 + IS_SAFE * (rules.is_safe(seat, to) - rules.is_safe(seat, from));
    if (to == HOME) sum += COMES_HOME;
    const Victim victim = victim_at(p, rules, to);
    if (victim.seat >= 0) sum += CAPTURES + SQUARE * p.tokens[victim.seat][victim.token];
    return sum;
}

}  // namespace

int heuristic_action(const Position& p, const Rules& rules, u64 key) {
    const Enemies enemies(p, rules);
    int best = -1, best_worth = 0;
    u64 best_lot = 0;
    for (u32 rest = legal_actions(p, rules); rest; rest &= rest - 1) {
        const int action = std::countr_zero(rest);
        const int value = worth(p, rules, enemies, action);
        const u64 lot = keyed_word({key, u64(action)});
        if (best < 0 || value > best_worth || (value == best_worth && lot > best_lot))
            best = action, best_worth = value, best_lot = lot;
    }
    return best;
}

}  // namespace keisei::ludo
