// CURLcode -> Errc, in one place.
#pragma once

#include <httpretry/error.hpp>

#include <curl/curl.h>

#include <string>

namespace httpretry {

struct CurlFailure {
  Errc code;
  bool permanent;  // the same would happen again
};

// A code that is newer than this table is not retried.
CurlFailure failure_of(CURLcode code);

// What to add to a message about an `errno` that a limit of this process may be behind; often
// empty.
std::string hint_at_limit(int error);

}  // namespace httpretry
