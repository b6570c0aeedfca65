#include "shogi/actions.h"

namespace keisei {
namespace {

enum Direction : u8 { UP, UP_LEFT, UP_RIGHT, LEFT, RIGHT, DOWN, DOWN_LEFT, DOWN_RIGHT, JUMP_LEFT, JUMP_RIGHT };

// Files grow to the left of the player who looks up the board.
Direction direction_of(int files_left, int ranks_down) {
    if (ranks_down == -2 && files_left == 1) return JUMP_LEFT;
    if (ranks_down == -2 && files_left == -1) return JUMP_RIGHT;
    if (ranks_down < 0) return files_left == 0 ? UP : files_left > 0 ? UP_LEFT : UP_RIGHT;
    if (ranks_down > 0) return files_left == 0 ? DOWN : files_left > 0 ? DOWN_LEFT : DOWN_RIGHT;
    return files_left > 0 ? LEFT : RIGHT;
}

}  // namespace

ActionTable::ActionTable() {
    for (int from = 0; from < SQUARES; ++from)
        for (int to = 0; to < SQUARES; ++to)
            action[SQUARES * from + to] =
                u16(SQUARES * direction_of(file_of(to) - file_of(from), rank_of(to) - rank_of(from)) + to);
}

const ActionTable ACTION_TABLE;

}  // namespace keisei
