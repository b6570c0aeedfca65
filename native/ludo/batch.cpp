#include "ludo/batch.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "ludo/observation.h"

namespace keisei::ludo {
namespace {

void write_mask(u32 legal, bool* out) {
    for (int action = 0; action < ACTIONS; ++action) out[action] = legal >> action & 1;
}

// The action that stands at a place among the legal ones, from 0.
int nth_action(u32 legal, int place) {
    for (; place > 0; --place) legal &= legal - 1;
    return std::countr_zero(legal);
}

}  // namespace

Batch::Batch(int size, u64 seed, u64 first_game, const Options& options)
    : seed_(seed), first_game_(first_game), options_(options), games_(size) {
    for (int i = 0; i < size; ++i) restart(games_[i], i, 0);
}

void Batch::restart(Game& game, u64 index, u32 episode) const {
    game.episode = episode;
    game.ply = 0;
    game.key = key_of(index, episode);
    Dice dice(game.key, 0, RESET_STREAM);
    game.position = first_position(rules(), dice);
    game.legal = legal_actions(game.position, rules());
}

Ending Batch::judge(const Game& game) const {
    if (!game.legal) return ALL_HOME;
    return options_.max_plies && game.ply >= options_.max_plies ? MAX_PLIES : UNFINISHED;
}

// What the tokens of a seat are worth, each part 1 at most where its weight is 1.
double Batch::standing(const Position& p, int seat) const {
    const Shaping& s = options_.shaping;
    int squares = 0, out = 0, safe = 0, home = 0;
    for (const int position : p.tokens[seat]) {
        if (position == YARD) continue;
        squares += position;
        ++out;
        safe += rules().is_safe(seat, position);
        home += position == HOME;
    }
    return (s.progress * squares / HOME + s.leaving * out + s.safety * safe + s.home * home) / TOKENS;
}

// `gains` has what each seat gains besides winning.
void Batch::pay(Ending ending, int winner, const double* gains, float* rewards, float* scores) const {
    const int seats = rules().seats;
    double total = 0;
    for (int seat = 0; seat < seats; ++seat) total += gains[seat];
    for (int seat = 0; seat < seats; ++seat) {
        const double others = options_.shaping.zero_sum ? (total - gains[seat]) / (seats - 1) : 0;
        const double score = ending != ALL_HOME ? 0.0 : seat == winner ? 1.0 : -1.0 / (seats - 1);
        scores[seat] = float(score);
        rewards[seat] = float(score + gains[seat] - others);
    }
}

// Plays one action of a game, and pays its seats.
Ending Batch::advance(Game& game, int action, float* rewards, float* scores) const {
    const Shaping& shaping = options_.shaping;
    const int seats = shaping.is_any() ? rules().seats : 0;  // those whose standing counts
    const int mover = game.position.turn;
    double gains[MAX_SEATS] = {};
    for (int seat = 0; seat < seats; ++seat) gains[seat] = -standing(game.position, seat);
    Dice dice(game.key, u64(game.ply), CHANCE_STREAM);
    if (play(game.position, rules(), action, dice)) gains[mover] += shaping.captures;
    ++game.ply;
    game.legal = legal_actions(game.position, rules());
    const Ending ending = judge(game);
    if (ending != ALL_HOME || shaping.keep_standing)
        for (int seat = 0; seat < seats; ++seat) gains[seat] += shaping.discount * standing(game.position, seat);
    pay(ending, mover, gains, rewards, scores);
    return ending;
}

int Batch::step(const int* actions, const StepOutput& out) {
    for (int i = 0; i < size(); ++i)
        if (actions[i] < 0 || actions[i] >= ACTIONS || !(games_[i].legal >> actions[i] & 1)) return -1 - i;
    const int seats = rules().seats;
    int finished = 0;
    for (int i = 0; i < size(); ++i) {
        Game& game = games_[i];
        const Ending ending = advance(game, actions[i], out.rewards + seats * i, out.scores + seats * i);
        out.ending[i] = ending;
        out.terminated[i] = ending == ALL_HOME;
        out.truncated[i] = ending == MAX_PLIES;
        out.plies[i] = game.ply;
        if (ending == UNFINISHED) continue;
        out.final_game[finished] = i;
        out.final_seat[finished] = game.position.turn;
        game.position.pack(rules(), out.final_packed + rules().packed_bytes() * finished);
        ++finished;
        restart(game, i, game.episode + 1);
    }
    return finished;
}

void Batch::rows(int* seat, int* episode, int* ply) const {
    for (int i = 0; i < size(); ++i) {
        seat[i] = games_[i].position.turn;
        episode[i] = int(games_[i].episode);
        ply[i] = games_[i].ply;
    }
}

void Batch::observe(u8* out) const {
    const int bytes = Layout(rules()).bytes();
    for (const Game& game : games_) {
        write_observation(game.position, rules(), game.legal, out);
        out += bytes;
    }
}

void Batch::legal(bool* out) const {
    for (const Game& game : games_) {
        write_mask(game.legal, out);
        out += ACTIONS;
    }
}

void Batch::pack(u8* out) const {
    for (const Game& game : games_) {
        game.position.pack(rules(), out);
        out += rules().packed_bytes();
    }
}

int Batch::expand(const u8* packed, int count, u8* observations, bool* legal) const {
    const int bytes = Layout(rules()).bytes();
    for (int row = 0; row < count; ++row) {
        Position p;
        if (!p.unpack(rules(), packed + rules().packed_bytes() * row)) return row;
        const u32 actions = legal_actions(p, rules());
        if (observations) write_observation(p, rules(), actions, observations + std::size_t(bytes) * row);
        if (legal) write_mask(actions, legal + std::size_t(ACTIONS) * row);
    }
    return -1;
}

void Batch::random_actions(int* out) const {
    for (int i = 0; i < size(); ++i) {
        const Game& game = games_[i];
        const u64 word = finish(absorb(game.key, {u64(game.ply), RANDOM_ACTION_STREAM, u64(game.position.turn)}));
        out[i] = nth_action(game.legal, int((word >> 32) * u64(std::popcount(game.legal)) >> 32));
    }
}

void Batch::heuristic_actions(const int* games, int count, const u64* keys, int* out) const {
    for (int i = 0; i < count; ++i) out[i] = heuristic_action(games_[games[i]].position, rules(), keys[i]);
}

std::string Batch::save() const { return SavedBatch::save(*this); }
bool Batch::load(const std::string& blob) { return SavedBatch::load(*this, blob); }

void Batch::save_game(const Game& game, std::string& blob) const {
    append(blob, u32(game.ply));
    blob.resize(blob.size() + rules().packed_bytes());
    game.position.pack(rules(), reinterpret_cast<u8*>(blob.data() + blob.size()) - rules().packed_bytes());
}

bool Batch::load_game(u32 index, u32 episode, const std::string& blob, std::size_t& at) {
    Game& game = games_[index];
    u32 ply = 0;
    if (!take(blob, at, ply) || ply > MAX_PLY) return false;
    const std::size_t packed_bytes = rules().packed_bytes();
    if (blob.size() - at < packed_bytes) return false;
    if (!game.position.unpack(rules(), reinterpret_cast<const u8*>(blob.data()) + at)) return false;
    at += packed_bytes;
    game.episode = episode;
    game.ply = int(ply);
    game.key = key_of(index, episode);
    game.legal = legal_actions(game.position, rules());
    return judge(game) == UNFINISHED;
}

}  // namespace keisei::ludo
