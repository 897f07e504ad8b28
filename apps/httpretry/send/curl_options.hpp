// The options of curl 7.88 that we do not have on purpose, and words of other programs.
#pragma once

#include <string>
#include <string_view>

namespace httpretry::cli {

// The end of a message about the option "--name" or "-n": why we do not have it, and what to use
// instead. Empty if it is no option of curl's, and no usual word for one of ours.
std::string about_unknown_option(std::string_view option);

}  // namespace httpretry::cli
