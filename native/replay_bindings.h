#pragma once

#include <nanobind/nanobind.h>

namespace keisei {

void bind_replay(nanobind::module_& m);

}  // namespace keisei
