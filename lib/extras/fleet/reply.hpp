// Reply: what a Redis server replies to a command, or that it does not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace httpretry::fleet {

struct Reply {
  // Lost: no reply came, and the command may have been carried out or not.
  enum class Kind : std::uint8_t { Nil, Integer, Text, List, Error, Lost };
  Kind kind = Kind::Nil;
  std::int64_t integer = 0;
  std::string text;  // of an error, too, and why it was lost
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
  // The integer at `index` of the list; 0 where there is none.
  [[nodiscard]] std::int64_t at(std::size_t index) const {
    return index < list.size() ? list[index].integer : 0;
  }
};

}  // namespace httpretry::fleet
