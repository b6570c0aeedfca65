#include "sparse_rows.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <system_error>
#include <thread>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace keisei {
namespace {

// Sums are written out as vectors: compilers keep a plain array of them in memory, which takes four times as long.
#if defined(__AVX2__)
constexpr int LANES = 8;
#else
constexpr int LANES = 4;
#endif
typedef float Lanes __attribute__((vector_size(LANES * sizeof(float))));

inline Lanes lanes_at(const float* from) {
    Lanes lanes;
    std::memcpy(&lanes, from, sizeof lanes);
    return lanes;
}

constexpr int BLOCK = 8;  // vectors that are summed side by side, in registers

// Sums the first `Vectors` vectors of some rows of a matrix, each times a number.
template <int Vectors>
inline void sum_rows(const int* row, const float* value, std::size_t count, const float* matrix, int width,
                     float* out) {
    Lanes sums[Vectors] = {};
    for (std::size_t i = 0; i < count; ++i) {
        const float* const from = matrix + std::size_t(row[i]) * width;
#pragma GCC unroll 8
        for (int v = 0; v < Vectors; ++v) sums[v] += lanes_at(from + v * LANES) * value[i];
    }
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) std::memcpy(out + v * LANES, &sums[v], sizeof sums[v]);
}

// What is left of a row beyond its vectors: one number of each row.
inline void sum_numbers(const int* row, const float* value, std::size_t count, const float* matrix, int width,
                        float* out) {
    float sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += matrix[std::size_t(row[i]) * width] * value[i];
    *out = sum;
}

// In 32 sums that are then added in pairs, so that every build rounds alike.
inline float dot(const float* a, const float* b, int width) {
    constexpr int SUMS = 32;
    Lanes sums[SUMS / LANES] = {};
    const auto add = [&sums](const float* x, const float* y) {
#pragma GCC unroll 8
        for (int v = 0; v < SUMS / LANES; ++v) sums[v] += lanes_at(x + v * LANES) * lanes_at(y + v * LANES);
    };
    int at = 0;
    for (; at + SUMS <= width; at += SUMS) add(a + at, b + at);
    if (at < width) {
        float x[SUMS] = {}, y[SUMS] = {};
        std::copy(a + at, a + width, x);
        std::copy(b + at, b + width, y);
        add(x, y);
    }
#pragma GCC unroll 8
    for (int half = SUMS / LANES / 2; half; half /= 2)
#pragma GCC unroll 8
        for (int v = 0; v < half; ++v) sums[v] += sums[v + half];
    float sum[LANES];
    std::memcpy(sum, &sums[0], sizeof sum);
    for (int half = LANES / 2; half; half /= 2)
        for (int i = 0; i < half; ++i) sum[i] += sum[i + half];
    return sum[0];
}

constexpr double ENOUGH = 500'000;  // multiplications that are worth a thread

// Calls part(first, last) for slices of 0 … count, in several threads; row_at gives where a share of the work ends.
template <typename RowAt, typename Part>
void share_out(double work, int threads, int count, RowAt row_at, Part part) {
    const int shares = std::clamp(int(work / ENOUGH), 1, std::max(threads, 1));
    std::vector<std::thread> others;
    others.reserve(shares);
    int first = 0;
    for (int share = 1; share < shares; ++share) {
        const int last = row_at(double(share) / shares);
        try {
            others.emplace_back(part, first, last);
        } catch (const std::system_error&) {
            part(first, last);  // there are no more threads to be had
        }
        first = last;
    }
    part(first, count);
    for (std::thread& other : others) other.join();
}

// A bit for each of 64 bytes: whether it is not 0.
inline u64 set_bytes(const u8* bytes) {
    u64 mask = 0;
#if defined(__AVX2__)
    for (const int at : {0, 32}) {
        __m256i half;
        std::memcpy(&half, bytes + at, sizeof half);
        const u32 empty = u32(_mm256_movemask_epi8(_mm256_cmpeq_epi8(half, _mm256_setzero_si256())));
        mask |= u64(u32(~empty)) << at;
    }
#else
    constexpr u64 low = 0x7f7f7f7f7f7f7f7f;
    for (int at = 0; at < 64; at += 8) {
        u64 eight;
        std::memcpy(&eight, bytes + at, sizeof eight);
        const u64 tops = (((eight & low) + low) | eight) & ~low;
        mask |= ((tops >> 7) * 0x0102040810204080 >> 56) << at;
    }
#endif
    return mask;
}

// Writes first + i for each i where a number is not 0, and up to 8 numbers beyond. Returns how many. Eight are written
// at once, even if fewer are left: a wrong guess of when to stop takes longer.
int find_set(const u8* bytes, int count, int first, int* out) {
    int found = 0, at = 0;
    for (; at + 64 <= count; at += 64) {
        u64 mask = set_bytes(bytes + at);
        const int end = found + std::popcount(mask);
        for (int next = found; next < end; next += 8)
            for (int i = 0; i < 8; ++i, mask &= mask - 1) out[next + i] = first + at + std::countr_zero(mask);
        found = end;
    }
    for (; at < count; ++at)
        if (bytes[at]) out[found++] = first + at;
    return found;
}

int find_set(const float* numbers, int count, int first, int* out) {
    int found = 0;
    for (int at = 0; at < count; ++at)
        if (numbers[at] != 0) out[found++] = first + at;
    return found;
}

// The ends of the runs of columns whose places are side by side.
std::vector<int> runs(const int* places, int columns) {
    std::vector<int> ends;
    for (int column = 1; column <= columns; ++column)
        if (column == columns || places[column] != places[column - 1] + 1) ends.push_back(column);
    return ends;
}

}  // namespace

SparseRows SparseRows::transposed() const {
    SparseRows result(rows());
    result.ends_.assign(std::size_t(columns_) + 1, 0);
    result.column_.resize(column_.size());
    result.value_.resize(value_.size());
    for (const int column : column_) ++result.ends_[column + 1];
    for (int column = 0; column < columns_; ++column) result.ends_[column + 1] += result.ends_[column];
    std::vector<std::size_t> next(result.ends_.begin(), result.ends_.end() - 1);
    for (int row = 0; row < rows(); ++row)
        for (std::size_t i = ends_[row]; i < ends_[row + 1]; ++i) {
            const std::size_t at = next[column_[i]]++;
            result.column_[at] = row;
            result.value_[at] = value_[i];
        }
    return result;
}

void SparseRows::times(const float* dense, int width, float* out, int threads) const {
    const auto row_at = [this](double share) {
        const auto entry = std::size_t(share * double(column_.size()));
        return int(std::lower_bound(ends_.begin(), ends_.end() - 1, entry) - ends_.begin());
    };
    share_out(double(column_.size()) * width, threads, rows(), row_at,
              [=, this](int first, int last) { times(dense, width, out, first, last); });
}

// Block by block of columns, so that what is read of `dense` at a time fits into the cache.
void SparseRows::times(const float* dense, int width, float* out, int first_row, int last_row) const {
    const auto for_rows = [&](auto sum, int at) {
        for (int row = first_row; row < last_row; ++row) {
            const std::size_t begin = ends_[row];
            sum(column_.data() + begin, value_.data() + begin, ends_[row + 1] - begin, dense + at, width,
                out + std::size_t(row) * width + at);
        }
    };
    int at = 0;
    for (; at + BLOCK * LANES <= width; at += BLOCK * LANES) for_rows(sum_rows<BLOCK>, at);
    for (; at + LANES <= width; at += LANES) for_rows(sum_rows<1>, at);
    for (; at < width; ++at) for_rows(sum_numbers, at);
}

template <typename Number>
SparseRows gather(const Number* observations, int rows, int size, const int* places, const float* factors,
                  int columns) {
    const std::vector<int> ends = runs(places, columns);
    std::vector<int> set(columns + 8);
    SparseRows result(columns);
    for (int row = 0; row < rows; ++row) {
        const Number* const numbers = observations + std::size_t(row) * size;
        int found = 0, first = 0;
        for (const int end : ends) {
            found += find_set(numbers + places[first], end - first, first, set.data() + found);
            first = end;
        }
        result.add_row(set.data(), found, [&](int i) { return float(numbers[places[set[i]]]) * factors[set[i]]; });
    }
    return result;
}

template SparseRows gather(const u8*, int, int, const int*, const float*, int);
template SparseRows gather(const float*, int, int, const int*, const float*, int);

void list_actions(const u8* legal, int rows, int actions, int count, int* out) {
    std::vector<int> set(actions + 8);
    for (int row = 0; row < rows; ++row, legal += actions, out += count) {
        const int found = std::min(find_set(legal, actions, 0, set.data()), count);
        std::fill(std::copy(set.begin(), set.begin() + found, out), out + count, -1);
    }
}

void score(const float* features, const float* weight, const float* bias, const int* actions, int rows, int count,
           int width, float* out, int threads) {
    const auto row_at = [rows](double share) { return int(share * rows); };
    share_out(double(rows) * count * width, threads, rows, row_at, [=](int first, int last) {
        for (int row = first; row < last; ++row) {
            const float* const own = features + std::size_t(row) * width;
            for (int i = 0; i < count; ++i) {
                const std::size_t at = std::size_t(row) * count + i;
                const int a = actions[at];
                out[at] = a < 0 ? 0 : dot(own, weight + std::size_t(a) * width, width) + bias[a];
            }
        }
    });
}

}  // namespace keisei
