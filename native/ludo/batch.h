// Independent games of Ludo, stepped together. Nothing is allocated in a step.
#pragma once

#include <string>
#include <vector>

#include "ludo/position.h"
#include "saved.h"

namespace keisei::ludo {

constexpr u32 MAX_PLY = 0x7ffffffe;  // what a row's ply can tell, and one more

enum Ending : u8 { UNFINISHED, ALL_HOME, MAX_PLIES };

// Weights of what a seat is rewarded for besides winning; a seat's standing is worked out from its tokens.
struct Shaping {
    double progress = 0, leaving = 0, safety = 0, home = 0;  // parts of the standing
    double captures = 0;          // for each capture
    double discount = 1;          // the learner's, so that the standing leaves the best policy as it is
    bool zero_sum = true;         // what a seat gains, the others lose in equal parts
    bool keep_standing = false;   // do not take the standing back where the rules end a game

    bool is_any() const { return progress != 0 || leaving != 0 || safety != 0 || home != 0 || captures != 0; }
};

struct Options {
    Rules rules;
    int max_plies = 0;  // 0 where nothing cuts a game off
    Shaping shaping;
};

// What a step writes, one entry for each game; `final_*` one for each game that finished.
struct StepOutput {
    float* rewards;  // [batch][seats]
    bool* terminated;
    bool* truncated;
    u8* ending;
    float* scores;  // [batch][seats]
    int* plies;
    int* final_game;
    int* final_seat;
    u8* final_packed;  // [finished][packed_bytes]
};

class Batch {
  public:
    Batch(int size, u64 seed, u64 first_game, const Options& options);

    int size() const { return int(games_.size()); }
    const Rules& rules() const { return options_.rules; }
    void rows(int* seat, int* episode, int* ply) const;
    void observe(u8* out) const;
    void legal(bool* out) const;
    void pack(u8* out) const;
    // Expands packed rows of any game with these rules. Returns -1, or the first row that is no possible position.
    int expand(const u8* packed, int count, u8* observations, bool* legal) const;
    void random_actions(int* out) const;
    // The actions of the heuristic player for some games, with a key for each that decides between equal ones.
    void heuristic_actions(const int* games, int count, const u64* keys, int* out) const;
    // Returns how many games finished. If an action is not legal, plays nothing and returns -1 - its row.
    int step(const int* actions, const StepOutput& out);

    std::string save() const;
    // Goes on from a saved state, with its seed and its numbers of games.
    // Returns false if the bytes are no state of this batch. The batch then does not change.
    bool load(const std::string& blob);

  private:
    friend struct keisei::SavedBatch;

    struct Game {
        Position position;
        u32 legal;
        u32 episode;
        int ply;
        u64 key;  // (seed, game, episode) absorbed
    };

    u64 key_of(u64 index, u32 episode) const { return absorb(0, {seed_, first_game_ + index, episode}); }
    void restart(Game& game, u64 index, u32 episode) const;
    void save_game(const Game& game, std::string& blob) const;
    bool load_game(u32 index, u32 episode, const std::string& blob, std::size_t& at);
    Ending judge(const Game& game) const;
    double standing(const Position& p, int seat) const;
    void pay(Ending ending, int winner, const double* gains, float* rewards, float* scores) const;
    Ending advance(Game& game, int action, float* rewards, float* scores) const;

    u64 seed_, first_game_;
    Options options_;
    std::vector<Game> games_;
};

}  // namespace keisei::ludo
