// Checks of the paths that jobs name, which must stay below a directory that the user has named.
#pragma once

#include <httpretry/http/result.hpp>

#include <string>
#include <string_view>

namespace httpretry::batch {
namespace detail {

// Returns whether a path is relative and has no part that is ".", ".." or empty. Such a path is
// plain.
HTTPRETRY_API bool is_plain_relative(std::string_view path);

// Returns the path of `relative` below `root`, with all symbolic links resolved. An empty `root` is
// the current directory. Returns Errc::InvalidRequest if `relative` is not plain, or if a link
// leads out of `root` or to nothing.
HTTPRETRY_API Result<std::string> path_below(const std::string& root, const std::string& relative);

}  // namespace detail
using detail::is_plain_relative;
using detail::path_below;

}  // namespace httpretry::batch
