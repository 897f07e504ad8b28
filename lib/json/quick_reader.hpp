// QuickReader: reads JSON that is well formed, and gives up where it is not. Then TreeReader
// (reader.cpp) reads the text again, at a fifth of the speed, and says what is wrong.
#pragma once

#include "lib/json/json.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace httpretry {

class QuickReader {
 public:
  // The nodes refer to `text`. Those that were added before it gave up stay in `tree`.
  QuickReader(std::string_view text, JsonTree& tree);
  // The root; nullptr where it gave up: also at a duplicate key, a number with an exponent, and
  // \u in a string.
  const JsonNode* read();

 private:
  // True if the value was read.
  bool read_value(JsonNode& node, std::size_t depth);
  bool read_object(JsonNode& object, std::size_t depth);
  bool read_array(JsonNode& array, std::size_t depth);
  bool read_child(JsonNode& parent, JsonNode& child, std::size_t depth);
  bool read_string(std::string_view& text);
  bool read_escaped(std::size_t begin, std::string_view& text);
  bool read_number(JsonNode& node);
  bool read_word(std::string_view word);
  void skip_blanks();
  bool take(char c);
  [[nodiscard]] char front() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  [[nodiscard]] Position position() const {
    return {line_, static_cast<int>(at_ - line_start_) + 1};
  }

  std::string_view text_;
  JsonTree& tree_;
  std::size_t at_ = 0;
  std::size_t line_start_ = 0;
  int line_ = 1;
  std::size_t most_nodes_;
};

}  // namespace httpretry
