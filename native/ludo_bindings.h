// Ludo as a part of the Python module.
#pragma once

#include <nanobind/nanobind.h>

namespace keisei {

void bind_ludo(nanobind::module_& m);

}  // namespace keisei
