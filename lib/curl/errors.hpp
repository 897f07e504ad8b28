// CURLcode -> Errc, in one place.
#pragma once

#include <httpretry/error.hpp>

#include <curl/curl.h>

namespace httpretry {

struct CurlFailure {
  Errc code;
  bool permanent;  // the same would happen again
};

// A code that is newer than this table is not retried.
CurlFailure failure_of(CURLcode code);

}  // namespace httpretry
