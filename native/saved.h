// The bytes of saved batches: numbers one after the other, read with care.
#pragma once

#include <cstring>
#include <string>
#include <utility>

#include "types.h"

namespace keisei {

constexpr u32 MAX_EPISODE = 0x7fffffff;  // what a row's episode can tell

template <typename T>
void append(std::string& blob, T value) {
    blob.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <typename T>
bool take(const std::string& blob, std::size_t& at, T& value) {
    if (blob.size() - at < sizeof value) return false;
    std::memcpy(&value, blob.data() + at, sizeof value);
    at += sizeof value;
    return true;
}

// A batch as bytes: the numbers that key its randomness, then its games. A batch says in save_game and load_game what
// the bytes of one game are beside its episode.
struct SavedBatch {
    template <typename Batch>
    static std::string save(const Batch& batch) {
        std::string blob;
        append(blob, batch.seed_);
        append(blob, batch.first_game_);
        append(blob, u32(batch.games_.size()));
        for (const auto& game : batch.games_) {
            append(blob, game.episode);
            batch.save_game(game, blob);
        }
        return blob;
    }

    // Returns false if the bytes are no state of this batch. The batch then does not change.
    template <typename Batch>
    static bool load(Batch& batch, const std::string& blob) {
        std::size_t at = 0;
        u32 count = 0;
        Batch loaded = batch;
        if (!take(blob, at, loaded.seed_) || !take(blob, at, loaded.first_game_) || !take(blob, at, count)) return false;
        if (count != loaded.games_.size()) return false;
        for (u32 i = 0; i < count; ++i) {
            u32 episode = 0;
            if (!take(blob, at, episode) || episode > MAX_EPISODE) return false;
            if (!loaded.load_game(i, episode, blob, at)) return false;
        }
        if (at != blob.size()) return false;
        batch = std::move(loaded);
        return true;
    }
};

}  // namespace keisei
