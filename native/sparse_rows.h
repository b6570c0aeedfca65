// Products with matrices that are mostly 0, for networks: a position sets few of its inputs, and few actions are legal.
#pragma once

#include <cstddef>
#include <vector>

#include "types.h"

namespace keisei {

// A matrix of which only the entries that are not 0 are kept, row by row.
class SparseRows {
  public:
    explicit SparseRows(int columns) : columns_(columns) {}

    int rows() const { return int(ends_.size()) - 1; }
    int columns() const { return columns_; }

    // `value` tells the number in each of these columns.
    template <typename Value>
    void add_row(const int* columns, int count, Value value) {
        column_.insert(column_.end(), columns, columns + count);
        value_.resize(column_.size());
        for (int i = 0; i < count; ++i) value_[ends_.back() + i] = value(i);
        ends_.push_back(column_.size());
    }

    SparseRows transposed() const;

    // out = this · dense, where dense is [columns, width] and out [rows, width]. A row of the result depends on no
    // other row, nor on the number of threads.
    void times(const float* dense, int width, float* out, int threads) const;

  private:
    void times(const float* dense, int width, float* out, int first_row, int last_row) const;

    int columns_;
    std::vector<std::size_t> ends_{0};  // where each row ends, after a 0
    std::vector<int> column_;
    std::vector<float> value_;
};

// [rows, columns]: what observations [rows, size] hold at `places`, one for each column, times the column's factor.
// Places side by side are read at once. Numbers are bytes or floats.
template <typename Number>
SparseRows gather(const Number* observations, int rows, int size, const int* places, const float* factors, int columns);

// [rows, count]: the actions that a mask [rows, actions] allows, in order; -1 where a row has no more.
void list_actions(const u8* legal, int rows, int actions, int count, int* out);

// out[row, i] = weight[a] · features[row] + bias[a] for a = actions[row, i], of which there are `count` in a row; 0
// where a is negative. `features` is [rows, width].
void score(const float* features, const float* weight, const float* bias, const int* actions, int rows, int count,
           int width, float* out, int threads);

}  // namespace keisei
