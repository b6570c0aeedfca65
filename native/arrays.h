// What the bindings share: NumPy arrays whose size is checked.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <stdexcept>
#include <string>

namespace nb = nanobind;

namespace keisei {

template <typename T>
using Array = nb::ndarray<T, nb::c_contig, nb::device::cpu>;

template <typename T>
T* data(Array<T>& array, std::size_t size, const char* name) {
    if (array.size() != size)
        throw std::invalid_argument(std::string(name) + " has " + std::to_string(array.size()) + " elements, not " +
                                    std::to_string(size));
    return array.data();
}

inline void check_range(const int* numbers, std::size_t count, std::size_t limit, const char* what) {
    if (std::any_of(numbers, numbers + count, [=](int n) { return n < 0 || std::size_t(n) >= limit; }))
        throw std::out_of_range(std::string(what) + " is outside 0 … " + std::to_string(limit ? limit - 1 : 0));
}

inline nb::tuple names(const char* const* first, int count) {
    nb::list list;
    for (int i = 0; i < count; ++i) list.append(first[i]);
    return nb::tuple(list);
}

}  // namespace keisei
