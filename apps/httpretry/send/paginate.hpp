// --paginate: requests all pages of a list, and makes one response of them.
#pragma once

#include "cli/args.hpp"

#include <httpretry/chain/middleware.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#ifdef HTTPRETRY_WITH_PAGING
#include <httpretry/paging/paging.hpp>
#endif

namespace httpretry::cli {

#ifdef HTTPRETRY_WITH_PAGING
// The options of --paginate.
struct Pagination {
  bool on = false;
  Paging how;
  // --join-pages: a JSON pointer to the array in each page. Empty: the bodies are written one after
  // another.
  std::optional<std::string> join;
};

// Returns the flags, which set `to`.
std::vector<Flag> paging_flags(Pagination& to);

// Returns a middleware for the top of the chain. It requests the pages, and its response is the
// last page with the bodies of all of them. If a page fails, the outcome is its failure.
MiddlewarePtr paginate(const Pagination& options);
#else
// Without httpretry::paging the options do not exist.
struct Pagination {
  bool on = false;
};
inline std::vector<Flag> paging_flags(Pagination& /*to*/) { return {}; }
inline MiddlewarePtr paginate(const Pagination& /*options*/) { return nullptr; }
#endif

}  // namespace httpretry::cli
