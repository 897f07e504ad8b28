// --help and --version of sending.
#pragma once

#include "args.hpp"

#include <vector>

namespace httpretry::cli {

int print_help(const std::vector<Flag>& flags);
int print_version();

}  // namespace httpretry::cli
