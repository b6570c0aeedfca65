// Independent games, stepped together. Nothing is allocated in a step.
#pragma once

#include <string>
#include <vector>

#include "saved.h"
#include "shogi/actions.h"
#include "shogi/history.h"
#include "shogi/movegen.h"
#include "shogi/planes.h"

namespace keisei {

struct Rewards {
    float win = 1, loss = -1, draw = 0;
    float ply_cost = 0;   // what each side pays for each ply
    float material = 0;   // weight of the potential: black's material less white's, 1 for a whole set
    float discount = 1;   // the learner's, so that the potential leaves the best policy as it is
    bool keep_material = false;  // do not take the potential back where the rules end a game
};

struct Options {
    int max_plies = 512;
    bool declaration = false;  // a side that may declare a win by the 27-point rule on its turn does so
    bool limit_draws = false;  // a game that reaches max_plies is a draw by rule, and not cut off
    Rewards rewards;
};

// What a step writes, one entry for each game; `final_*` one for each game that finished.
struct StepOutput {
    float* rewards;  // [batch][2]
    bool* terminated;
    bool* truncated;
    u8* ending;
    float* scores;  // [batch][2]
    int* plies;
    int* final_game;
    int* final_seat;
    u8* final_packed;  // [finished][PACKED_BYTES]
};

constexpr int LISTED_ACTIONS = 608;  // room for all legal moves, in whole blocks, with some to write ahead
static_assert(LISTED_ACTIONS >= MAX_LEGAL_MOVES + WRITE_AHEAD);

class Batch {
  public:
    Batch(int size, u64 seed, u64 first_game, const Position& start, const Options& options);

    int size() const { return int(games_.size()); }
    void rows(int* seat, int* episode, int* ply) const;
    void observe(u8* out) const;
    void legal(bool* out) const;
    void pack(u8* out) const;
    void random_actions(int* out) const;
    // Returns how many games finished. If an action is not legal, plays nothing and returns -1 - its row.
    int step(const int* actions, const StepOutput& out);

    std::string save() const;
    // Goes on from a saved state, with its seed and its numbers of games.
    // Returns false if the bytes are no state of this batch. The batch then does not change.
    bool load(const std::string& blob);

  private:
    friend struct SavedBatch;

    struct Game {
        Position position;
        Clock clock;
        bool in_check;
        AttackCounts enemy;  // what the side attacks that is not to move
        u32 episode;
        u64 random_key;  // (seed, game, episode) mixed
        int legal_count;
        int material;
        Move moves[LISTED_ACTIONS];
        u16 actions[LISTED_ACTIONS];
        History history;
    };

    void restart(Game& game, u64 index, u32 episode) const;
    void save_game(const Game& game, std::string& blob) const;
    bool load_game(u32 index, u32 episode, const std::string& blob, std::size_t& at);
    void play(Game& game, Move m) const;
    void refresh(Game& game) const;
    Result judge(const Game& game) const;
    bool terminates(Ending ending) const;
    void pay(const Game& game, const Result& result, int material_before, float* rewards, float* scores) const;

    u64 seed_, first_game_;
    Position start_;
    Options options_;
    std::vector<Game> games_;
    std::vector<int> chosen_;
};

}  // namespace keisei
