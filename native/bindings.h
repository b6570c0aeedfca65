// What the Python module is made of, beside bindings.cpp itself.
#pragma once

#include <nanobind/nanobind.h>

namespace keisei {

void bind_shogi(nanobind::module_& m);
void bind_ludo(nanobind::module_& m);
void bind_links(nanobind::module_& m);
void bind_replay(nanobind::module_& m);

}  // namespace keisei
