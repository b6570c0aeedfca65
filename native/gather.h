// Products with matrices that are mostly 0, for networks: a position sets few of its inputs, and few actions are legal.
#pragma once

#include <cstddef>
#include <vector>

#include "types.h"

namespace keisei {

// Inputs that are read: `count` of them from `first` on.
struct Span {
    int first, count;
};

// A matrix of which only the entries that are not 0 are kept, row by row.
class SparseRows {
  public:
    explicit SparseRows(int columns) : columns_(columns) {}

    int rows() const { return int(ends_.size()) - 1; }
    int columns() const { return columns_; }

    void reserve(std::size_t rows, std::size_t entries);
    void add(int column, float value) { column_.push_back(column), value_.push_back(value); }
    void end_row() { ends_.push_back(column_.size()); }

    SparseRows transposed() const;

    // out = this · dense, where dense is [columns, width] and out [rows, width]. A row of the result depends on no other
    // row, nor on the number of threads.
    void times(const float* dense, int width, float* out, int threads) const;

  private:
    void times(const float* dense, int width, float* out, int first_row, int last_row) const;

    int columns_;
    std::vector<std::size_t> ends_{0};  // where each row ends, after a 0
    std::vector<int> column_;
    std::vector<float> value_;
};

// What observations [rows, size] hold in these spans, one column after the other, times the factor of the column.
template <typename Number>
SparseRows gather(const Number* observations, int rows, int size, const std::vector<Span>& spans, const float* factors);

// out[row, i] = weight[a] · features[row] + bias[a] for a = actions[row, i], of which there are `count` in a row; 0 where
// a is negative. `features` is [rows, width].
void score(const float* features, const float* weight, const float* bias, const int* actions, int rows, int count,
           int width, float* out, int threads);

}  // namespace keisei
