#include "shogi/batch.h"

#include <algorithm>

#include "randomness.h"

namespace keisei {
namespace {

constexpr float WHOLE_SET = 126;  // the material of all pieces, unpromoted

constexpr int BLOCK = 16;
static_assert(LISTED_ACTIONS % BLOCK == 0);

// The index of an action in a game's list; its length or more if it is not there. Whole blocks are compared at once:
// what earlier positions left behind the list comes after all legal actions.
int place_of(int action, const u16* list) {
    if (action < 0 || action >= ACTIONS) return LISTED_ACTIONS;
    for (int at = 0; at < LISTED_ACTIONS; at += BLOCK) {
        bool here = false;
        for (int i = 0; i < BLOCK; ++i) here |= list[at + i] == action;
        if (here) return int(std::find(list + at, list + at + BLOCK, u16(action)) - list);
    }
    return LISTED_ACTIONS;
}

}  // namespace

Batch::Batch(int size, u64 seed, u64 first_game, const Position& start, const Options& options)
    : seed_(seed), first_game_(first_game), start_(start), options_(options), games_(size), chosen_(size) {
    for (int i = 0; i < size; ++i) {
        games_[i].history.reserve(options.max_plies);
        restart(games_[i], i, 0);
    }
}

void Batch::restart(Game& game, u64 index, u32 episode) const {
    game.position = start_;
    game.clock = {};
    game.episode = episode;
    game.random_key = keyed_word({seed_, first_game_ + index, episode});
    refresh(game);
    game.history.restart(game.position, game.in_check);
}

// Legal moves, check and material of the position that a game has come to.
void Batch::refresh(Game& game) const {
    game.enemy = attack_counts(game.position, ~game.position.turn());
    const Bitboard checking = checkers(game.position, game.enemy);
    ActionList list(game.moves, game.actions);
    generate(game.position, checking, list, game.enemy);
    game.in_check = bool(checking);
    game.legal_count = list.size;
    game.material = options_.rewards.material != 0 ? game.position.material() : 0;
}

void Batch::play(Game& game, Move m) const {
    const int captured = game.position.play(m);
    ++game.clock.ply;
    refresh(game);
    game.history.push(m, captured, game.position.key(), game.in_check);
    game.clock.repetitions = game.history.repetitions();
}

Result Batch::judge(const Game& game) const {
    const Color turn = game.position.turn();
    if (game.legal_count == 0) return {NO_LEGAL_MOVES, ~turn};
    if (game.clock.repetitions >= 3) return game.history.fourfold(turn);
    if (options_.declaration && game.position.can_declare_win()) return {DECLARATION, turn};
    if (game.clock.ply >= options_.max_plies) return {MAX_PLIES, DRAW};
    return {};
}

bool Batch::terminates(Ending ending) const {
    return ending != UNFINISHED && (ending != MAX_PLIES || options_.limit_draws);
}

void Batch::pay(const Game& game, const Result& result, int material_before, float* rewards, float* scores) const {
    const Rewards& r = options_.rewards;
    const bool terminated = terminates(result.ending);
    // Ng, Harada and Russell (1999): the potential of a finished game is nothing, that of a cut one stays.
    const float after = terminated && !r.keep_material ? 0 : float(game.material);
    const float shaping = r.material * (r.discount * after - float(material_before)) / WHOLE_SET;
    for (const Color seat : {BLACK, WHITE}) {
        const bool won = result.winner == seat;
        scores[seat] = !terminated || result.winner == DRAW ? 0.0f : won ? 1.0f : -1.0f;
        const float base = !terminated ? 0.0f : result.winner == DRAW ? r.draw : won ? r.win : r.loss;
        rewards[seat] = base - r.ply_cost + (seat == BLACK ? shaping : -shaping);
    }
}

int Batch::step(const int* actions, const StepOutput& out) {
    for (int i = 0; i < size(); ++i) {
        const Game& game = games_[i];
        chosen_[i] = place_of(actions[i], game.actions);
        if (chosen_[i] >= game.legal_count) return -1 - i;
    }
    int finished = 0;
    for (int i = 0; i < size(); ++i) {
        Game& game = games_[i];
        const int material_before = game.material;
        play(game, game.moves[chosen_[i]]);
        const Result result = judge(game);
        pay(game, result, material_before, out.rewards + 2 * i, out.scores + 2 * i);
        out.ending[i] = u8(result.ending);
        out.terminated[i] = terminates(result.ending);
        out.truncated[i] = result.ending != UNFINISHED && !out.terminated[i];
        out.plies[i] = game.clock.ply;
        if (result.ending == UNFINISHED) continue;
        out.final_game[finished] = i;
        out.final_seat[finished] = game.position.turn();
        // The packed clock counts what a row can see; a fourth occurrence is as good as a third there.
        const Clock seen{game.clock.ply, std::min(game.clock.repetitions, 3)};
        game.position.pack(seen, out.final_packed + PACKED_BYTES * finished);
        ++finished;
        restart(game, i, game.episode + 1);
    }
    return finished;
}

void Batch::rows(int* seat, int* episode, int* ply) const {
    for (int i = 0; i < size(); ++i) {
        seat[i] = games_[i].position.turn();
        episode[i] = int(games_[i].episode);
        ply[i] = games_[i].clock.ply;
    }
}

void Batch::observe(u8* out) const {
    for (const Game& game : games_) {
        write_planes(game.position, game.clock, game.enemy, options_.max_plies, out);
        out += OBSERVATION_BYTES;
    }
}

void Batch::legal(bool* out) const {
    std::memset(out, 0, games_.size() * ACTIONS);
    for (const Game& game : games_) {
        for (int i = 0; i < game.legal_count; ++i) out[game.actions[i]] = true;
        out += ACTIONS;
    }
}

void Batch::pack(u8* out) const {
    for (const Game& game : games_) {
        game.position.pack(game.clock, out);
        out += PACKED_BYTES;
    }
}

void Batch::random_actions(int* out) const {
    for (int i = 0; i < size(); ++i) {
        const Game& game = games_[i];
        const u64 word = keyed_word({game.random_key, u64(game.clock.ply), RANDOM_ACTION_STREAM});
        out[i] = game.actions[(word >> 32) * u64(game.legal_count) >> 32];
    }
}

std::string Batch::save() const { return SavedBatch::save(*this); }
bool Batch::load(const std::string& blob) { return SavedBatch::load(*this, blob); }

// A game is saved as its moves: they rebuild everything else exactly.
void Batch::save_game(const Game& game, std::string& blob) const {
    const std::vector<Move>& moves = game.history.moves();
    append(blob, u32(moves.size()));
    blob.append(reinterpret_cast<const char*>(moves.data()), moves.size() * sizeof(Move));
}

bool Batch::load_game(u32 index, u32 episode, const std::string& blob, std::size_t& at) {
    Game& game = games_[index];
    game.history.reserve(options_.max_plies);  // a copied vector has no room to spare
    u32 plies = 0;
    if (!take(blob, at, plies) || plies >= u32(options_.max_plies)) return false;
    restart(game, index, episode);
    for (u32 ply = 0; ply < plies; ++ply) {
        Move m = NO_MOVE;
        if (!take(blob, at, m)) return false;
        if (std::find(game.moves, game.moves + game.legal_count, m) == game.moves + game.legal_count) return false;
        play(game, m);
        if (judge(game).ending != UNFINISHED) return false;
    }
    return true;
}

}  // namespace keisei
