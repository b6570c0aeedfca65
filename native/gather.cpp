#include "gather.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <thread>

namespace keisei {
namespace {

// Written out as vectors: compilers keep a plain array of sums in memory, which takes four times as long. Processors
// without AVX do each in two halves, which gives the same bits.
constexpr int LANES = 8;
typedef float Lanes __attribute__((vector_size(LANES * sizeof(float))));

constexpr int BLOCK = 8;           // vectors that are summed side by side, in registers
constexpr double ENOUGH = 500'000; // multiplications that are worth a thread

// Calls part(first, last) for slices of 0 … count, each in a thread; `ends` gives where a share of the work ends.
template <typename Ends, typename Part>
void share_out(double work, int threads, int count, Ends ends, Part part) {
    const int shares = std::clamp(int(work / ENOUGH), 1, std::max(threads, 1));
    std::vector<std::thread> others;
    int first = 0;
    for (int share = 1; share < shares; ++share) {
        const int last = ends(double(share) / shares);
        others.emplace_back(part, first, last);
        first = last;
    }
    part(first, count);
    for (std::thread& other : others) other.join();
}

// Sums the first `Vectors` vectors of some rows of a matrix, each times a number.
template <int Vectors>
inline void sum_rows(const int* row, const float* value, std::size_t count, const float* matrix, int width, float* out) {
    Lanes sums[Vectors] = {};
    for (std::size_t i = 0; i < count; ++i) {
        const float* const from = matrix + std::size_t(row[i]) * width;
#pragma GCC unroll 8
        for (int v = 0; v < Vectors; ++v) {
            Lanes lanes;
            std::memcpy(&lanes, from + v * LANES, sizeof lanes);
            sums[v] += lanes * value[i];
        }
    }
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) std::memcpy(out + v * LANES, &sums[v], sizeof sums[v]);
}

float dot(const float* a, const float* b, int width) {
    Lanes sums[4] = {};
    int at = 0;
    const auto add = [&](int i) {
        Lanes x, y;
        std::memcpy(&x, a + at, sizeof x);
        std::memcpy(&y, b + at, sizeof y);
        sums[i] += x * y;
        at += LANES;
    };
    while (at + 4 * LANES <= width) add(0), add(1), add(2), add(3);
    while (at + LANES <= width) add(0);
    const Lanes lanes = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    float sum = 0;
    for (int i = 0; i < LANES; ++i) sum += lanes[i];
    for (; at < width; ++at) sum += a[at] * b[at];
    return sum;
}

// Most inputs are 0, so that bytes are passed over by eights.
template <typename Found>
void for_each_set(const u8* numbers, int count, Found found) {
    int at = 0;
    for (; at + 8 <= count; at += 8) {
        u64 eight;
        std::memcpy(&eight, numbers + at, sizeof eight);
        while (eight) {
            const int byte = std::countr_zero(eight) / 8;
            found(at + byte);
            eight &= ~(u64(255) << 8 * byte);
        }
    }
    for (; at < count; ++at)
        if (numbers[at]) found(at);
}

template <typename Found>
void for_each_set(const float* numbers, int count, Found found) {
    for (int at = 0; at < count; ++at)
        if (numbers[at] != 0) found(at);
}

}  // namespace

void SparseRows::reserve(std::size_t rows, std::size_t entries) {
    ends_.reserve(rows + 1);
    column_.reserve(entries);
    value_.reserve(entries);
}

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
    const auto for_rows = [&](auto&& sum, int at) {
        for (int row = first_row; row < last_row; ++row) {
            const std::size_t begin = ends_[row];
            sum(column_.data() + begin, value_.data() + begin, ends_[row + 1] - begin, dense + at, width,
                out + std::size_t(row) * width + at);
        }
    };
    int at = 0;
    for (; at + BLOCK * LANES <= width; at += BLOCK * LANES) for_rows(sum_rows<BLOCK>, at);
    for (; at + LANES <= width; at += LANES) for_rows(sum_rows<1>, at);
    const auto sum_one = [](const int* row, const float* value, std::size_t count, const float* from, int stride, float* to) {
        float sum = 0;
        for (std::size_t i = 0; i < count; ++i) sum += from[std::size_t(row[i]) * stride] * value[i];
        *to = sum;
    };
    for (; at < width; ++at) for_rows(sum_one, at);
}

template <typename Number>
SparseRows gather(const Number* observations, int rows, int size, const std::vector<Span>& spans, const float* factors) {
    int columns = 0;
    for (const Span& span : spans) columns += span.count;
    SparseRows result(columns);
    result.reserve(rows, std::size_t(rows) * 128);
    for (int row = 0; row < rows; ++row) {
        int first = 0;
        for (const Span& span : spans) {
            const Number* const numbers = observations + std::size_t(row) * size + span.first;
            for_each_set(numbers, span.count,
                         [&](int i) { result.add(first + i, float(numbers[i]) * factors[first + i]); });
            first += span.count;
        }
        result.end_row();
    }
    return result;
}

template SparseRows gather(const u8*, int, int, const std::vector<Span>&, const float*);
template SparseRows gather(const float*, int, int, const std::vector<Span>&, const float*);

void score(const float* features, const float* weight, const float* bias, const int* actions, int rows, int count,
           int width, float* out, int threads) {
    share_out(double(rows) * count * width, threads, rows, [=](double share) { return int(share * rows); },
              [=](int first, int last) {
                  for (std::size_t i = std::size_t(first) * count; i < std::size_t(last) * count; ++i) {
                      const int a = actions[i];
                      const float* const row = features + i / count * width;
                      out[i] = a < 0 ? 0 : dot(row, weight + std::size_t(a) * width, width) + bias[a];
                  }
              });
}

}  // namespace keisei
