// What the sanitized program does. Each part returns a line about it, or throws what is wrong.
#pragma once

#include <string>

namespace keisei {

std::string perfts();
std::string playouts();
std::string taking_back();
std::string random_bytes();
std::string flipped_bits();
std::string any_boards();
std::string damaged_states();
std::string draws();
std::string searches();
std::string ludo_games();
std::string damaged_ludo();
std::string rollouts_and_replays();

}  // namespace keisei
