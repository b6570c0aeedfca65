// The bytes of saved states: numbers one after the other, read with care.
#pragma once

#include <cstring>
#include <string>

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

}  // namespace keisei
