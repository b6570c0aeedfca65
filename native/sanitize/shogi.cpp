// Shogi for the sanitizers.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "sanitize/checks.h"
#include "sanitize/parts.h"
#include "shogi/batch.h"
#include "shogi/search.h"

namespace keisei {
namespace {

constexpr char START[] = "lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b -";

// SFEN as far as this program needs it: its own texts are well formed.
PieceType type_of_letter(char letter) {
    const std::size_t at = std::string("plnsbrgk").find(char(letter | 32));
    need(at != std::string::npos, "a letter of an SFEN is no piece");
    return PieceType(at + 1);
}
Color color_of_letter(char letter) { return letter >= 'a' ? WHITE : BLACK; }

Position from_sfen(const std::string& sfen, Rules rules = STRICT) {
    u8 board[SQUARES] = {}, hands[2 * HAND_TYPES] = {};
    std::size_t at = 0;
    int file = 8, rank = 0, promoted = 0, count = 0;
    for (; sfen[at] != ' '; ++at) {
        const char sign = sfen[at];
        if (sign == '/') file = 8, ++rank;
        else if (sign == '+') promoted = PROMOTED;
        else if (sign <= '9') file -= sign - '0';
        else {
            const PieceType type = PieceType(type_of_letter(sign) + promoted);
            board[9 * file-- + rank] = u8(make_piece(color_of_letter(sign), type));
            promoted = 0;
        }
    }
    const Color turn = sfen[at + 1] == 'b' ? BLACK : WHITE;
    for (at += 3; at < sfen.size() && sfen[at] != '-'; ++at) {
        const char sign = sfen[at];
        if (sign <= '9') count = 10 * count + sign - '0';
        else {
            hands[HAND_TYPES * color_of_letter(sign) + type_of_letter(sign) - 1] = u8(count ? count : 1);
            count = 0;
        }
    }
    Position p;
    const std::string rule = p.set(board, hands, turn, rules);
    if (!rule.empty()) throw Failure(sfen + ": " + rule);
    return p;
}

std::string packed_bytes(const Position& p, const Clock& clock) {
    std::vector<u8> out(PACKED_BYTES);
    p.pack(clock, out.data());
    return {out.begin(), out.end()};
}

// All that can be made of a position, each in memory of its exact size.
void exercise(const Position& p, const Clock& clock) {
    MoveList list;
    MoveCount count;
    const AttackCounts enemy = attack_counts(p, ~p.turn());
    generate(p, p.checkers(), list);
    generate(p, checkers(p, enemy), count, enemy);
    need(list.size == count.size, "the moves and their count differ");
    std::vector<u8> planes(OBSERVATION_BYTES, 7);
    write_planes(p, clock, enemy, 512, planes.data());
    need(planes.back() == 1, "the last plane is not all ones");
    std::vector<bool> seen(ACTIONS);
    for (const Move m : list) {
        const u16 action = action_of(p.turn(), m);
        need(action < ACTIONS && !seen[action], "two moves share an action, or it is out of range");
        seen[action] = true;
    }
}

// Plays every move of a position and takes it back.
void play_and_undo(Position p) {
    const std::string before = packed_bytes(p, {});
    const u64 key = p.key();
    MoveList list;
    generate(p, p.checkers(), list);
    for (const Move m : list) {
        const int captured = p.play(m);
        need(p.broken_rule(STRICT) == nullptr, "a legal move leads to an impossible position");
        p.undo(m, captured);
        need(p.key() == key && packed_bytes(p, {}) == before, "taking a move back does not restore the position");
    }
}

// A batch with all the memory that its methods write to.
struct Arena {
    explicit Arena(Batch& b)
        : batch(b), n(b.size()), seat(n), episode(n), ply(n), actions(n), plies(n), final_game(n), final_seat(n),
          observations(std::size_t(n) * OBSERVATION_BYTES), packed(n * PACKED_BYTES), final_packed(n * PACKED_BYTES),
          ending(n), rewards(2 * n), scores(2 * n), legal(new bool[std::size_t(n) * ACTIONS]),
          terminated(new bool[n]), truncated(new bool[n]) {}

    void read() {
        batch.rows(seat.data(), episode.data(), ply.data());
        batch.observe(observations.data());
        batch.legal(legal.get());
        batch.pack(packed.data());
        batch.random_actions(actions.data());
    }
    int step() {
        return batch.step(actions.data(), {rewards.data(), terminated.get(), truncated.get(), ending.data(),
                                           scores.data(), plies.data(), final_game.data(), final_seat.data(),
                                           final_packed.data()});
    }

    Batch& batch;
    int n;
    std::vector<int> seat, episode, ply, actions, plies, final_game, final_seat;
    std::vector<u8> observations, packed, final_packed, ending;
    std::vector<float> rewards, scores;
    std::unique_ptr<bool[]> legal, terminated, truncated;
};

// What was packed, unpacked again, gives the same planes and the same legal actions.
void need_same_row(const Arena& arena, int row, int max_plies) {
    Position p;
    Clock clock;
    need(p.unpack(arena.packed.data() + row * PACKED_BYTES, clock) == nullptr, "a packed row is refused");
    need(p.turn() == arena.seat[row] && clock.ply == arena.ply[row], "a packed row tells another turn or ply");
    std::vector<u8> planes(OBSERVATION_BYTES);
    const AttackCounts enemy = attack_counts(p, ~p.turn());
    write_planes(p, clock, enemy, max_plies, planes.data());
    const u8* const expected = arena.observations.data() + std::size_t(row) * OBSERVATION_BYTES;
    need(std::memcmp(planes.data(), expected, OBSERVATION_BYTES) == 0, "unpacking gives other planes");
    MoveList list;
    generate(p, checkers(p, enemy), list, enemy);
    const bool* const legal = arena.legal.get() + std::size_t(row) * ACTIONS;
    int marked = 0;
    for (int action = 0; action < ACTIONS; ++action) marked += legal[action];
    need(marked == list.size, "the mask does not mark as many actions as there are moves");
    for (const Move m : list) need(legal[action_of(p.turn(), m)], "the mask lacks a move");
    need(legal[arena.actions[row]], "a random action is not legal");
}

void need_sound_step(const Arena& arena, int finished) {
    need(finished >= 0 && finished <= arena.n, "a legal step was refused");
    int done = 0;
    for (int i = 0; i < arena.n; ++i) {
        done += arena.ending[i] != UNFINISHED;
        need((arena.ending[i] != UNFINISHED) == (arena.terminated[i] || arena.truncated[i]), "an ending is no end");
        need(arena.scores[2 * i] + arena.scores[2 * i + 1] == 0, "the scores do not add up to nothing");
    }
    need(done == finished, "the finished games are miscounted");
    for (int i = 0; i < finished; ++i) {
        Position p;
        Clock clock;
        need(p.unpack(arena.final_packed.data() + i * PACKED_BYTES, clock) == nullptr, "a final row is refused");
        need(p.turn() == arena.final_seat[i] && arena.ending[arena.final_game[i]], "a final row is of another game");
        exercise(p, clock);
    }
}

// A step with one illegal action is refused by its row and plays nothing.
void need_refusal(Arena& arena, int row) {
    const std::string before = arena.batch.save();
    const int good = arena.actions[row];
    int illegal = 0;
    while (arena.legal[std::size_t(row) * ACTIONS + illegal]) ++illegal;
    for (const int bad : {illegal, -1, int(ACTIONS), good + 0x10000}) {
        arena.actions[row] = bad;
        need(arena.step() == -1 - row && arena.batch.save() == before, "an illegal action was not refused whole");
    }
    arena.actions[row] = good;
}

struct Setting {
    const char* sfen;
    Options options;
    int steps;
};

const Setting SETTINGS[] = {
    {START, {}, 2000},
    {START, {120, true, true, {1, -1, 0, 0.01f, 0.5f, 0.99f, true}}, 2000},
    {"l6nl/5+P1gk/2np1S3/p1p4Pp/3P2Sp1/1PPb2P1P/P5GS1/R8/LN4bKL w RGgsn5p", {64, false, false, {}}, 1500},
    {"R8/2K1S1SSk/4B4/9/9/9/9/9/1L1L1L3 b RBGSNLP3g3n17p", {8, false, false, {}}, 400},
    {"+P+P+P+PK+P+P+P+P/+P+B7/9/9/9/9/9/9/4k4 w RB4P2g", {30, true, false, {}}, 100},
    {"kr7/9/9/9/9/9/9/9/7RK b -", {200, false, false, {}}, 1500},
    {"4k4/9/9/9/9/9/9/9/4K4 b -", {1, false, false, {}}, 10},
};

}  // namespace

std::string playouts() {
    long games = 0, steps = 0;
    for (const Setting& setting : SETTINGS) {
        const Position start = from_sfen(setting.sfen);
        Batch batch(40, 7, 3, start, setting.options), other(40, 8, 0, start, setting.options);
        Arena arena(batch), twin(other);
        for (int i = 0; i < setting.steps; ++i, steps += arena.n) {
            arena.read();
            for (int row = i % 4; row < arena.n; row += 4) need_same_row(arena, row, setting.options.max_plies);
            if (i % 16 == 0) {
                need_refusal(arena, i / 16 % arena.n);
                need(other.load(batch.save()) && other.save() == batch.save(), "a saved state is not taken up");
                twin.read();
                need(twin.actions == arena.actions && twin.observations == arena.observations && twin.ply == arena.ply,
                     "a loaded batch shows something else");
                twin.step();
            }
            const int finished = arena.step();
            need_sound_step(arena, finished);
            need(i % 16 != 0 || other.save() == batch.save(), "a loaded batch plays otherwise");
            games += finished;
        }
    }
    need(games > 5000, "too few games came to an end");
    return std::to_string(games) + " games, " + std::to_string(steps) + " steps";
}

std::string perfts() {
    struct Case {
        const char* sfen;
        int depth;
        u64 nodes;
    };
    const Case cases[] = {
        {START, 4, 719731},
        {"lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w -", 4, 719731},
        {"l6nl/5+P1gk/2np1S3/p1p4Pp/3P2Sp1/1PPb2P1P/P5GS1/R8/LN4bKL w RGgsn5p", 3, 4809015},
        {"R8/2K1S1SSk/4B4/9/9/9/9/9/1L1L1L3 b RBGSNLP3g3n17p", 2, 105677},
        {"ln2+r1r2/5s+Pkl/3+B1p1p1/p4B2p/2P6/P6PP/1PNP1P3/2G3SK1/L4G1NL w 2GSN3Ps3p", 3, 45717},
        {"4l3b/8k/4P1S2/9/r1N1KG2r/9/2G1S4/9/b3l4 b 2P", 3, 157771},
        {"3lkl3/R8/9/3N5/9/9/9/9/4K4 b Pr2b4g4s3n2l17p", 2, 50055},
        {"4k4/1r7/9/8b/2n6/4n1p2/5l1p1/s1K5p/9 w -", 4, 30229},
        {"k+n7/sg7/9/9/9/9/+r5K1g/7L1/2LN1R1+Bb b RBGSNLP", 3, 414441},
        {"8k/6G2/7G1/9/9/9/9/9/4K4 w -", 1, 0},
    };
    u64 total = 0;
    for (const Case& c : cases) {
        Position p = from_sfen(c.sfen, COMPOSED);
        const u64 nodes = perft(p, c.depth);
        if (nodes != c.nodes) throw Failure(std::string(c.sfen) + " has " + std::to_string(nodes) + " nodes");
        total += nodes;
    }
    return std::to_string(std::size(cases)) + " positions, " + std::to_string(total) + " nodes";
}

std::string taking_back() {
    Random random(1);
    int plies = 0;
    for (int game = 0; game < 20; ++game) {
        Position p = from_sfen(START);
        const std::string before = packed_bytes(p, {});
        History history;
        history.restart(p, false);
        for (int ply = 0; ply < 200; ++ply, ++plies) {
            MoveList list;
            generate(p, p.checkers(), list);
            if (list.size == 0) break;
            if (ply % 20 == 0) play_and_undo(p);
            const Move m = list.moves[random.below(list.size)];
            const int captured = p.play(m);
            history.push(m, captured, p.key(), bool(p.checkers()));
            if (history.repetitions() >= 3) history.fourfold(p.turn());
        }
        while (!history.moves().empty()) history.pop(p);
        need(packed_bytes(p, {}) == before, "taking a game back does not lead to its start");
    }
    return std::to_string(plies) + " plies";
}

namespace {

// Checks if the bytes are a position. If so, it must pack to the same bytes and pass every exercise.
bool read_packed(const std::string& bytes) {
    const std::vector<u8> exact(bytes.begin(), bytes.end());
    Position p;
    Clock clock;
    if (p.unpack(exact.data(), clock)) return false;
    p.fill_key();
    need(packed_bytes(p, clock) == bytes, "an unpacked position packs to other bytes");
    exercise(p, clock);
    play_and_undo(p);
    return true;
}

}  // namespace

std::string random_bytes() {
    Random random(2);
    int accepted = 0;
    for (int i = 0; i < 100000; ++i) {
        std::string bytes(PACKED_BYTES, '\0');
        // Sparse bytes come further than dense ones, which nearly all set a bit that must be 0.
        const int density = 1 + i % 4;
        for (char& byte : bytes) {
            u64 bits = random.word();
            for (int k = 1; k < density; ++k) bits &= random.word();
            byte = char(bits);
        }
        accepted += read_packed(bytes);
    }
    return "100000 tried, " + std::to_string(accepted) + " are positions";
}

std::string flipped_bits() {
    Random random(3);
    int tried = 0, accepted = 0;
    for (const Setting& setting : SETTINGS) {
        Batch batch(8, 1, 0, from_sfen(setting.sfen), setting.options);
        Arena arena(batch);
        for (int i = 0; i < 30; ++i) {
            arena.read();
            for (int row = 0; row < arena.n; ++row)
                for (int k = 0; k < 25; ++k, ++tried) {
                    const auto first = arena.packed.begin() + row * PACKED_BYTES;
                    std::string bytes(first, first + PACKED_BYTES);
                    for (int flips = 1 + random.below(3); flips; --flips) {
                        const int bit = random.below(8 * PACKED_BYTES);
                        bytes[bit / 8] = char(bytes[bit / 8] ^ 1 << bit % 8);
                    }
                    accepted += read_packed(bytes);
                }
            arena.step();
        }
    }
    need(accepted > 100 && accepted < tried, "flipped bits are all refused, or none");
    return std::to_string(tried) + " tried, " + std::to_string(accepted) + " are positions";
}

// Boards of any codes at all, and composed ones that hold far more pieces than a set has.
std::string any_boards() {
    Random random(4);
    int accepted = 0;
    for (int i = 0; i < 20000; ++i) {
        std::vector<u8> board(SQUARES), hands(2 * HAND_TYPES);
        if (i % 4 == 0) {
            for (u8& code : board) code = u8(random.word());
        } else {
            const int pieces = random.below(70);
            for (int k = 0; k < pieces; ++k) board[random.below(SQUARES)] = u8(random.below(31));
            for (u8& code : board) code = (code & 15) == KING || (code & 15) == PAWN ? 0 : code;
            board[random.below(SQUARES)] = KING;
            board[random.below(SQUARES)] = KING + WHITE_PIECE;
        }
        for (u8& count : hands) count = u8(random.below(i % 4 ? 5 : 256));
        Position p;
        if (!p.set(board.data(), hands.data(), Color(random.below(2)), COMPOSED).empty()) continue;
        ++accepted;
        MoveList list;
        generate(p, p.checkers(), list);
        for (const Move m : list) p.undo(m, p.play(m));
        p.can_declare_win();
        p.material();
    }
    need(accepted > 500, "hardly any composed board was accepted");
    return "20000 tried, " + std::to_string(accepted) + " are positions";
}

std::string damaged_states() {
    Random random(5);
    const Options options{90, true, false, {}};
    Batch batch(4, 9, 0, from_sfen(START), options);
    Arena arena(batch);
    int tried = 0, refused = 0;
    const auto attempt = [&](const std::string& blob) {
        const std::string before = batch.save();
        ++tried;
        if (batch.load(blob)) {
            need(batch.save() == blob, "a state that was taken up is saved otherwise");
            need(batch.load(before), "the state before is refused");
        } else {
            ++refused;
            need(batch.save() == before, "a refused state changed the games");
        }
    };
    for (int i = 0; i < 60; ++i) {
        arena.read();
        arena.step();
        const std::string blob = batch.save();
        for (int k = 0; k < 40; ++k) {
            std::string damaged = blob;
            for (int flips = 1 + random.below(3); flips; --flips) {
                char& byte = damaged[random.below(int(damaged.size()))];
                byte = char(byte ^ 1 << random.below(8));
            }
            attempt(damaged);
            attempt(blob.substr(0, random.below(int(blob.size()))));
            attempt(blob + std::string(1 + random.below(9), char(random.word())));
        }
    }
    attempt("");
    need(refused > tried / 2 && refused < tried, "damaged states are nearly all taken up, or all refused");
    return std::to_string(tried) + " tried, " + std::to_string(refused) + " refused";
}

namespace {

// The same search in its plainest form, to compare with.
int plain_negamax(Position& p, int depth, int ply) {
    MoveList list;
    generate(p, p.checkers(), list);
    if (list.size == 0) return ply - MATE;
    if (depth == 0) return p.turn() == BLACK ? p.material() : -p.material();
    int best = -MATE;
    for (const Move m : list) {
        const int captured = p.play(m);
        best = std::max(best, -plain_negamax(p, depth - 1, ply + 1));
        p.undo(m, captured);
    }
    return best;
}

}  // namespace

std::string searches() {
    Random random(13);
    int compared = 0, mates = 0;
    for (int game = 0; game < 40; ++game) {
        Position p = from_sfen(START);
        for (int ply = 0; ply < 120; ++ply) {
            MoveList list;
            generate(p, p.checkers(), list);
            if (list.size == 0) break;
            const int depth = list.size < 60 && random.below(20) == 0 ? 2 : 1;
            const u64 key = p.key();
            for (const Choice& choice : {search(p, depth, random.word()), grab(p, random.word())})
                need(std::find(list.begin(), list.end(), choice.move) != list.end(), "a player chose an illegal move");
            const Choice choice = search(p, depth, random.word());
            need(choice.score == plain_negamax(p, depth, 0), "the search and the plain one differ");
            need(p.key() == key, "a search changed the position");
            ++compared;
            mates += choice.score > MATE / 2;
            p.play(list.moves[random.below(list.size)]);
        }
    }
    need(mates > 5, "hardly a mate was found");
    return std::to_string(compared) + " positions, " + std::to_string(mates) + " mates found";
}

}  // namespace keisei
