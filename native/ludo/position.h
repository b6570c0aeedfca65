// The rules of Ludo, as docs/games/ludo.md has them: where tokens stand, what is legal, and what a move does.
#pragma once

#include "randomness.h"

namespace keisei::ludo {

using i8 = std::int8_t;

constexpr int TOKENS = 4, VALUES = 6, ACTIONS = VALUES * TOKENS;
constexpr int MAX_SEATS = 4;
constexpr int LOOP = 52, QUARTER = LOOP / 4;

// A token's position as its owner counts it: the loop is 0 … 50, the home column 51 … 55.
constexpr int YARD = -1, START = 0, LAST_ON_LOOP = 50, HOME = 56;

constexpr bool is_on_loop(int position) { return position >= START && position <= LAST_ON_LOOP; }
constexpr bool is_safe_square(int square) { return square % QUARTER == 0 || square % QUARTER == 8; }

// The safe squares as bits. They are the same for each player, counted from the own start.
constexpr u64 SAFE_SQUARES = [] {
    u64 squares = 0;
    for (int square = 0; square < LOOP; ++square) squares |= u64(is_safe_square(square)) << square;
    return squares;
}();

// A turn brings three dice at most. Each further roll costs a die and brings three; tokens that reach home or are
// captured bring one, and no token does so twice in a turn.
constexpr int MOST_DICE = 3 + 2 * TOKENS * MAX_SEATS;

struct Rules {
    int seats = 2;
    bool blocks = false;        // two tokens of a seat on one square of the loop let no other token pass or land
    bool capture_rolls = true;  // a capture brings a roll

    int packed_bytes() const { return 1 + VALUES + TOKENS * seats; }
    // Two players sit at opposite corners.
    int corner(int seat) const { return seats == 2 ? 2 * seat : seat; }
    // The square of the loop, counted from the start of seat 0.
    int square(int seat, int position) const { return (position + QUARTER * corner(seat)) % LOOP; }
    // Whether a token that is out of the yard cannot be captured. Between two players one more square is safe, since
    // the other never comes there.
    bool is_safe(int seat, int position) const {
        return position > LAST_ON_LOOP || is_safe_square(square(seat, position)) ||
               (seats == 2 && position == LOOP / 2 - 1);
    }
};

// The dice of one ply of one game. The k-th die depends on the key alone.
class Dice {
  public:
    Dice(u64 game_key, u64 ply, u64 stream) : key_(absorb(game_key, {ply, stream})) {}
    int roll() { return 1 + int(below(finish(absorb(key_, {++rolled_})), VALUES)); }

  private:
    u64 key_, rolled_ = 0;
};

struct Position {
    i8 tokens[MAX_SEATS][TOKENS];
    u8 dice[VALUES];  // how many dice of each value are in hand
    i8 turn;

    bool is_won(int seat) const {
        for (const int position : tokens[seat])
            if (position != HOME) return false;
        return true;
    }
    void pack(const Rules& rules, u8* out) const;
    // Returns false if the bytes are no position that a game can reach. A won position is accepted.
    bool unpack(const Rules& rules, const u8* in);
};

constexpr int value_of(int action) { return action / TOKENS + 1; }
constexpr int token_of(int action) { return action % TOKENS; }
constexpr int after_move(int position, int value) { return position == YARD ? START : position + value; }

Position first_position(const Rules& rules, Dice& dice);

// The legal actions as bits. There are none exactly where the game is won.
u32 legal_actions(const Position& p, const Rules& rules);

// Plays a legal action; the turn passes until somebody can play. Returns true if a token was captured.
bool play(Position& p, const Rules& rules, int action, Dice& dice);

// The token that a token of the seat to move captures when it comes to a position: one of the next seat first, and
// the first of its tokens. The seat is -1 where it captures none.
struct Victim {
    int seat = -1, token = 0;
};
Victim victim_at(const Position& p, const Rules& rules, int position);

// The enemy tokens on the loop: which of them could capture a token of the seat to move, and be captured by it, with
// one die. Blocks are not considered.
class Enemies {
  public:
    Enemies(const Position& p, const Rules& rules);

    // How many could capture a token that stands here.
    int dangers(int position) const {
        if (!is_on_loop(position) || is_safe(position)) return 0;
        int sum = 0;
        for (int i = 0; i < count_; ++i) {
            const int way = position - there_[i];
            sum += unsigned(way + (way < 0 ? LOOP : 0) - 1) < unsigned(reach_[i]);
        }
        return sum;
    }
    // Whether a token that comes here captures one.
    bool is_met(int position) const {
        bool met = false;
        for (int i = 0; i < count_; ++i) met |= open_[i] == position;
        return met;
    }
    // How many a token that stands here could capture.
    int targets(int position) const {
        if (!is_on_loop(position)) return 0;
        int sum = 0;
        for (int i = 0; i < count_; ++i) sum += unsigned(open_[i] - position - 1) < unsigned(VALUES);
        return sum;
    }

  private:
    static bool is_safe(int position) { return SAFE_SQUARES >> position & 1; }

    static constexpr int MOST = TOKENS * (MAX_SEATS - 1), NOWHERE = -LOOP;
    int count_ = 0;
    int there_[MOST];  // the square of each, counted from the start of the seat to move
    int reach_[MOST];  // how many squares it can go on the loop, at most the highest die
    int open_[MOST];   // its square if the seat to move can capture it there, else NOWHERE
};

// The action of a player by simple rules: home, captures, danger and progress. The key decides between equal ones.
int heuristic_action(const Position& p, const Rules& rules, u64 key);

}  // namespace keisei::ludo
