// Ludo for the sanitizers. Each part gives a line about what it did.
#pragma once

#include <string>

namespace keisei {

std::string ludo_games();
std::string damaged_ludo();

}  // namespace keisei
