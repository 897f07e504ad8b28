// The short form of the command line, for example "queue:servers=10,service=exponential(50ms)".
#include "read.hpp"

#include "lib/core/base/text.hpp"

#include <charconv>

namespace httpretry::simulation {
namespace {

using JsonType = JsonNode::Type;

// Returns whether the whole text is a number in JSON.
bool is_number(std::string_view text) {
  double value = 0;
  const auto* const end = text.data() + text.size();
  const auto [parsed_end, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || parsed_end != end) return false;
  // from_chars also accepts "inf" and ".5", which are not numbers in JSON.
  return is_digit(text.back()) && (text.front() == '-' || is_digit(text.front()));
}

// Returns the index of the next comma outside of parentheses, or the size of the text.
std::size_t end_of_part(std::string_view text, std::size_t from) {
  int depth = 0;
  for (auto i = from; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')') --depth;
    if (text[i] == ',' && depth <= 0) return i;
  }
  return text.size();
}

// Builds the JSON tree of a short form, with the positions of its parts.
class ShortForm {
 public:
  ShortForm(std::string_view text, JsonTree& tree, Problems& problems)
      : text_(tree.keep(std::string(text))),
        tree_(tree),
        problems_(problems),
        object_(tree.add(JsonType::Object, nullptr)) {
    object_.position = position_at(0);
    tree.root = &object_;
  }

  // Adds the kind, if the format has one, and then the parts "key=value".
  void read(ShortFormat format) {
    std::size_t begin = 0;
    if (format == ShortFormat::WithKind) {
      const auto kind_end = std::min(text_.find(':'), text_.size());
      add("kind", /*key_index=*/0, text_.substr(0, kind_end), /*value_index=*/0);
      if (kind_end == text_.size()) return;
      begin = kind_end + 1;
    }
    while (begin <= text_.size()) {
      const auto end = end_of_part(text_, begin);
      read_part(begin, end);
      begin = end + 1;
    }
  }

 private:
  // The whole text is line 1.
  static Position position_at(std::size_t index) { return {1, static_cast<int>(index) + 1}; }

  // Adds the member for "key=value", or reports that the text in [begin, end) is not usable.
  void read_part(std::size_t begin, std::size_t end) {
    const auto part = text_.substr(begin, end - begin);
    const auto equals = part.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      problems_.error(position_at(begin), /*pointer=*/"",
                      "\"" + std::string(part) + "\" is not KEY=VALUE");
      return;
    }
    const auto key = part.substr(0, equals);
    if (object_.member(key) != nullptr) {
      problems_.error(position_at(begin), "/" + std::string(key), "the key is given twice");
      return;
    }
    add(key, begin, part.substr(equals + 1), begin + equals + 1);
  }

  // Adds a member to the object. The indexes are the positions of the key and the value in the
  // text.
  void add(std::string_view key, std::size_t key_index, std::string_view value,
           std::size_t value_index) {
    const bool boolean = value == "true" || value == "false";
    const auto type = boolean            ? JsonType::Boolean
                      : is_number(value) ? JsonType::Number
                                         : JsonType::String;
    auto& node = tree_.add(type, &object_);
    node.boolean = value == "true";
    node.text = value;
    node.key = key;
    node.key_position = position_at(key_index);
    node.position = position_at(value_index);
    object_.children.push_back(&node);
  }

  std::string_view text_;
  JsonTree& tree_;
  Problems& problems_;
  JsonNode& object_;
};

}  // namespace

void read_text(std::string_view text, ShortFormat format, JsonTree& tree, Problems& problems) {
  const auto first = text.find_first_not_of(" \t\r\n");
  const bool json = first != std::string_view::npos && text[first] == '{';
  if (json) return read_json(text, tree, problems);
  ShortForm(text, tree, problems).read(format);
}

}  // namespace httpretry::simulation
