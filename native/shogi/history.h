// The positions of a game so far, for repetition, taking moves back, and records.
#pragma once

#include <array>
#include <vector>

#include "shogi/position.h"

namespace keisei {

enum Ending : int { UNFINISHED, NO_LEGAL_MOVES, REPETITION, PERPETUAL_CHECK, DECLARATION, MAX_PLIES };
constexpr const char* ENDING_NAMES[] = {"unfinished",      "no_legal_moves", "repetition",
                                        "perpetual_check", "declaration",    "max_plies"};
constexpr int DRAW = -1;

struct Result {
    Ending ending = UNFINISHED;
    int winner = DRAW;
};

class History {
  public:
    void reserve(int plies) {
        for (auto& keys : keys_) keys.reserve(plies / 2 + 1);
        checks_.reserve(plies + 1);
        moves_.reserve(plies);
        captured_.reserve(plies);
    }
    void restart(const Position& p, bool in_check) {
        keys_[0].clear();
        keys_[1].clear();
        checks_.clear();
        moves_.clear();
        captured_.clear();
        filter_.fill(0);
        remember(p.key(), in_check);
    }
    void push(Move m, int captured, u64 key, bool in_check) {
        moves_.push_back(m);
        captured_.push_back(u8(captured));
        remember(key, in_check);
    }
    void pop(Position& p) {
        p.undo(moves_.back(), captured_.back());
        keys_[moves_.size() & 1].pop_back();
        checks_.pop_back();
        moves_.pop_back();
        captured_.pop_back();
        maybe_repeated_ = true;  // the filter forgets nothing, so from here on only the keys tell
    }
    const std::vector<Move>& moves() const { return moves_; }

    // How often the latest position stood before.
    int repetitions() const {
        if (!maybe_repeated_) return 0;
        const std::vector<u64>& keys = keys_[moves_.size() & 1];
        const u64 key = keys.back();
        const std::size_t earlier = keys.size() - 1;
        int count = 0;
        for (std::size_t i = 0; i < earlier; ++i) count += keys[i] == key;
        return count;
    }

    // The judgement on the fourth occurrence. The side all of whose moves since the first one gave check
    // loses. Should both have done so, neither is at fault more than the other: a draw.
    Result fourfold(Color turn) const {
        const int last = int(moves_.size());
        const std::vector<u64>& keys = keys_[last & 1];
        int first = 0;
        while (keys[first] != keys.back()) ++first;
        first = 2 * first + (last & 1);
        const bool turn_always_in_check = all_checks(first + 2, last);
        const bool other_always_in_check = all_checks(first + 1, last - 1);
        if (turn_always_in_check == other_always_in_check) return {REPETITION, DRAW};
        return {PERPETUAL_CHECK, turn_always_in_check ? turn : ~turn};
    }

  private:
    void remember(u64 key, bool in_check) {
        // Two bits of the key in a small filter: most positions are told to be new without a look at the others.
        u64 &first = filter_[key >> 58 & 15], &second = filter_[key >> 48 & 15];
        const u64 first_bit = u64(1) << (key >> 52 & 63), second_bit = u64(1) << (key >> 42 & 63);
        maybe_repeated_ = (first & first_bit) && (second & second_bit);
        first |= first_bit;
        second |= second_bit;
        keys_[moves_.size() & 1].push_back(key);
        checks_.push_back(in_check);
    }
    bool all_checks(int from, int to) const {
        for (int ply = from; ply <= to; ply += 2)
            if (!checks_[ply]) return false;
        return true;
    }

    std::array<u64, 16> filter_{};
    bool maybe_repeated_ = false;  // the latest position, by the filter
    std::vector<u64> keys_[2];  // by the parity of the ply: only every second position can be the same
    std::vector<u8> checks_;    // was the side to move in check?
    std::vector<Move> moves_;
    std::vector<u8> captured_;
};

}  // namespace keisei
