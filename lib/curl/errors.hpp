// CURLcode -> Errc, in one place.
#pragma once

#include <httpretry/http/result.hpp>

#include <curl/curl.h>

#include <optional>
#include <string>

namespace httpretry {

struct CurlFailure {
  Errc code;
  bool permanent;  // the same would happen again
};

// A code that is newer than this table is a permanent error.
CurlFailure failure_of(CURLcode code);

// The system's text for an `errno`, with the limit of this process that may be the cause.
std::string system_text(int error);
std::string hint_at_limit(int error);  // the second half of that, often empty

// What the exception that is being handled says; nullopt for std::bad_alloc.
std::optional<std::string> exception_text();

}  // namespace httpretry
