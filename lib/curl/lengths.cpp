#include "lengths.hpp"

#include "lib/http/text.hpp"

namespace httpretry {
namespace {

using Length = std::optional<std::uint64_t>;

// Reads the value of one Content-Length, which may be a list of equal numbers.
std::string read_lengths(std::string_view list, Length& length) {
  for (;;) {
    const auto comma = list.find(',');
    const auto text = trimmed(list.substr(0, comma));
    const auto number = to_number<std::uint64_t>(text);
    if (!number) return "its Content-Length \"" + printable(text) + "\" is not a number";
    if (length && length != number) {
      return "its Content-Length is " + std::to_string(*length) + " and also " +
             std::to_string(*number);
    }
    length = number;
    if (comma == std::string_view::npos) return {};
    list.remove_prefix(comma + 1);
  }
}

// Most names differ in size.
bool is(std::string_view name, std::string_view wanted) {
  return name.size() == wanted.size() && equal_ignoring_case(name, wanted);
}

}  // namespace

std::string length_problem(const Headers& headers) {
  Length length;
  bool encoded = false;
  for (const auto field : headers) {
    if (is(field.name, "Transfer-Encoding")) encoded = true;
    if (!is(field.name, "Content-Length")) continue;
    if (auto problem = read_lengths(field.value, length); !problem.empty()) return problem;
  }
  if (encoded && length) return "it has both Content-Length and Transfer-Encoding; expected one";
  return {};
}

}  // namespace httpretry
