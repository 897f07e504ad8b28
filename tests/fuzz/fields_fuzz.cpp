// Any lines as received header fields. What is taken is found again under its name in any case, and
// stands in one line that ends where it should.
#include <httpretry/http/headers.hpp>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

using namespace httpretry;  // NOLINT

namespace {

void demand(bool holds) {
  if (!holds) std::abort();
}

std::string other_case(std::string_view name) {
  std::string other(name);
  for (auto& c : other) {
    const auto letter = static_cast<unsigned char>(c);
    if (letter < 0x80 && std::isalpha(letter) != 0) c = static_cast<char>(letter ^ 0x20U);
  }
  return other;
}

void check(const Headers& headers) {
  std::size_t index = 0;
  for (const auto& field : headers) {
    demand(!field.name.empty() && headers.contains(other_case(field.name)));
    const std::string_view line(headers.line(index++));
    demand(line.find_first_of("\r\n") == std::string_view::npos && line.starts_with(field.name));
    demand(line.ends_with(field.value) || line.back() == ';');
  }
  demand(index == headers.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  Headers headers;
  std::size_t taken = 0;
  std::string first;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size() - 1) + 1;
    if (headers.try_add_line(text.substr(0, end))) ++taken;
    text.remove_prefix(end);
  }
  demand(headers.size() == taken);
  check(headers);
  if (headers.empty()) return 0;
  first = (*headers.begin()).name;
  headers.set(first, "one");
  demand(headers.get(other_case(first)) == "one");
  check(headers);
  headers.remove(other_case(first));
  demand(!headers.contains(first));
  check(headers);
  return 0;
}
