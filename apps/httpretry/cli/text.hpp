// What people read on standard error.
#pragma once

#include <httpretry/client/report.hpp>

#include <string>
#include <string_view>

namespace httpretry::cli {

// "12.3 s", "0.043 s".
std::string seconds(Duration time);
// As fine as the number needs: "1.50 s", "19.53 ms", "51.20 us".
std::string fine(Duration time);

// curl's rule: what has no scheme is http.
std::string with_scheme(const std::string& url);

// What stands where a URL should, for a message: without what may be a password or a key.
std::string without_secrets(std::string_view no_url);

// Writes a line to standard error, whole.
void say(const std::string& line);

// The same for a terminal and without a line end: what is said next stands in its place. Empty:
// only takes the last one away.
void say_for_now(const std::string& line);

}  // namespace httpretry::cli
