// Reply: the reply of a Redis server to a command, or the fact that none arrived.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace httpretry::fleet {

struct Reply {
  // Lost: no reply arrived, and the command may or may not have been executed.
  enum class Kind : std::uint8_t { Nil, Integer, Text, List, Error, Lost };
  Kind kind = Kind::Nil;
  std::int64_t integer = 0;
  std::string text;  // for Error its message, for Lost the reason
  std::vector<Reply> list;

  [[nodiscard]] static Reply lost_because(const std::string& why) {
    Reply reply;
    reply.kind = Kind::Lost;
    reply.text = why;
    return reply;
  }
  [[nodiscard]] bool lost() const { return kind == Kind::Lost; }
  [[nodiscard]] bool failed() const { return kind == Kind::Error || kind == Kind::Lost; }
  [[nodiscard]] bool begins_with(std::string_view start) const {
    return std::string_view(text).substr(0, start.size()) == start;
  }
  // Returns the integer at `index` of the list, or 0 if the list is shorter.
  [[nodiscard]] std::int64_t at(std::size_t index) const {
    return index < list.size() ? list[index].integer : 0;
  }
};

}  // namespace httpretry::fleet
