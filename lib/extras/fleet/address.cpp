#include "address.hpp"

#include "lib/core/base/text.hpp"

#include <algorithm>
#include <utility>

namespace httpretry::fleet {
namespace {

// The space ends the URL for programs that hide the secrets of URLs in messages. They would replace
// USER, PASSWORD and NAME.
constexpr std::string_view kForm =
    "expected redis:// and [USER:PASSWORD@]HOST[:PORT][/DATABASE][?job=NAME&workers=N&timeout=MS]";

// Reads the URL of a server, and keeps the first problem that it finds.
class Reader {
 public:
  explicit Reader(std::string_view url) : url_(url), rest_(url) {}

  // Reads the URL from front to back, and removes each part from `rest_`. Returns the address, or
  // the first problem with its position in the URL. Reading continues after a problem, but
  // fail() keeps only the first one.
  Result<Address> read() {
    read_scheme();
    auto authority = take(rest_.find_first_of("/?#"));  // [USER:PASSWORD@]HOST[:PORT]
    const auto credentials_end = authority.rfind('@');
    if (credentials_end != std::string_view::npos) {
      read_credentials(authority.substr(0, credentials_end));
      authority.remove_prefix(credentials_end + 1);
    }
    read_host(authority);
    if (!rest_.empty() && rest_.front() == '/') read_database();
    if (!rest_.empty() && rest_.front() == '?') read_query();
    set_position(rest_);
    if (!rest_.empty()) fail("'#' is not allowed in the URL of a server");
    if (!problem_.empty()) return Error(Errc::InvalidRequest, "Redis URL: " + problem_);
    return std::move(address_);
  }

 private:
  // Reads "redis://", and explains why "rediss://" is not supported.
  void read_scheme() {
    const auto end = rest_.find("://");
    const auto scheme = end == std::string_view::npos ? "" : to_lower(rest_.substr(0, end));
    if (scheme == "rediss") {
      return fail(
          "rediss:// is not supported: hiredis 0.14, which we use, has no TLS. Use redis:// "
          "through a tunnel, such as stunnel or WireGuard");
    }
    if (scheme != "redis") return fail("it does not begin with redis://");
    rest_.remove_prefix(end + 3);
  }

  void read_credentials(std::string_view text) {
    const auto colon = text.find(':');
    address_.user = percent_decode(text.substr(0, colon), "user");
    if (colon == std::string_view::npos) return fail("the user has no password");
    address_.password = percent_decode(text.substr(colon + 1), "password");
  }

  // Reads HOST or HOST:PORT. An IPv6 address is in brackets, because it contains colons itself.
  // `port_colon` is the position of the colon before the port, or npos if there is no port.
  void read_host(std::string_view text) {
    set_position(text);
    auto port_colon = text.rfind(':');  // replaced below for an IPv6 address
    if (!text.empty() && text.front() == '[') {
      const auto bracket = text.find(']');
      if (bracket == std::string_view::npos) return fail("']' is missing after the host");
      address_.host = text.substr(1, bracket - 1);
      port_colon = bracket + 1 < text.size() ? bracket + 1 : std::string_view::npos;
      if (port_colon != std::string_view::npos && text[port_colon] != ':') {
        return fail("expected ':' and a port after ']'");
      }
    } else {
      const bool has_several_colons = text.find(':') != port_colon;
      if (has_several_colons) return fail("an IPv6 address must be in brackets: [::1]");
      address_.host = text.substr(0, port_colon);
    }
    if (address_.host.empty()) return fail("it has no host");
    if (port_colon == std::string_view::npos) return;
    address_.port = read_number(text.substr(port_colon + 1), 1, 65535, "the port");
  }

  void read_database() {
    rest_.remove_prefix(1);
    const auto text = take(rest_.find_first_of("?#"));
    if (!text.empty()) address_.database = read_number(text, 0, 1'000'000, "the database");
  }

  // Reads the parameters behind '?', of the form NAME=VALUE and separated by '&'. If one is invalid
  // or unknown, notes that as the problem.
  void read_query() {
    rest_.remove_prefix(1);
    auto query = take(rest_.find('#'));
    while (!query.empty()) {
      auto value = take_until(query, '&');  // "job=a", and "a" once the name is removed
      set_position(value);
      const auto name = take_until(value, '=');
      if (name == "workers") {
        address_.workers = read_number(value, 1, 100'000, "workers");
      } else if (name == "timeout") {
        address_.timeout = std::chrono::milliseconds(read_number(value, 1, 60'000, "timeout"));
      } else if (name == "job") {
        address_.job = percent_decode(value, "job");
        check_job_name();
      } else {
        fail("unknown parameter '" + std::string(name) +
             "'; expected 'job', 'workers' or 'timeout'");
      }
    }
  }

  // The name becomes part of Redis keys, in which braces mark the hash tag.
  void check_job_name() {
    const auto usual = [](char c) {
      return is_letter(c) || is_digit(c) || c == '-' || c == '_' || c == '.' || c == ':';
    };
    const auto& job = address_.job;
    if (job.empty() || job.size() > 100 || !std::all_of(job.begin(), job.end(), usual)) {
      fail("job: expected a name of 1 to 100 letters, digits, '-', '_', '.' and ':'");
    }
  }

  // Sets the position for the next problem to the beginning of `part`, a substring of the URL.
  void set_position(std::string_view part) {
    position_ = static_cast<std::size_t>(part.data() - url_.data()) + 1;
  }

  // Returns the number. If the text is not a number from `least` to `most`, returns `least` after a
  // problem that names the number as `what`.
  int read_number(std::string_view text, int least, int most, const std::string& what) {
    set_position(text);
    const auto value = to_number<int>(text);
    if (value && *value >= least && *value <= most) return *value;
    fail(what + ": expected a number from " + std::to_string(least) + " to " +
         std::to_string(most));
    return least;
  }

  // Replaces each "%XX" by the byte that its hexadecimal digits stand for. After a malformed one,
  // returns the text before it. The problem names the text as `what`.
  std::string percent_decode(std::string_view text, const std::string& what) {
    set_position(text);
    std::string out;
    for (std::size_t index = 0; index < text.size(); ++index) {
      if (text[index] != '%') {
        out.push_back(text[index]);
        continue;
      }
      const auto hex_digits = text.substr(index + 1, 2);
      const auto byte = to_number<unsigned char>(hex_digits, /*base=*/16);
      if (!byte || hex_digits.size() != 2) {
        fail("the " + what +
             " has a '%' that is not followed by two hexadecimal digits: write %25");
        return out;
      }
      out.push_back(static_cast<char>(*byte));
      index += hex_digits.size();
    }
    return out;
  }

  // Removes up to `count` characters from the rest of the URL, or all of them for npos, and returns
  // them.
  std::string_view take(std::size_t count) {
    const auto text = rest_.substr(0, count);
    rest_.remove_prefix(text.size());
    return text;
  }

  void fail(const std::string& why) {
    if (!problem_.empty()) return;
    problem_ = "position " + std::to_string(position_) + ": " + why + " (";
    problem_.append(kForm).append(")");
  }

  std::string_view url_;
  std::string_view rest_;
  std::size_t position_ = 1;
  Address address_;
  std::string problem_;
};

}  // namespace

std::string Address::text() const {
  const bool brackets = host.find(':') != std::string::npos;
  auto out = "redis://" + (brackets ? "[" + host + "]" : host) + ":" + std::to_string(port);
  return out + "/" + std::to_string(database);
}

Result<Address> detail::parse_address(std::string_view url) { return Reader(url).read(); }

}  // namespace httpretry::fleet
