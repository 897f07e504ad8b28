// The short form of the command line, for example "queue:servers=10,service=exponential(50ms)".
#include "read.hpp"

#include <charconv>

namespace httpretry::simulation {
namespace {

using Type = JsonNode::Type;

bool is_number(std::string_view text) {
  double value = 0;
  const auto* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  // from_chars also accepts "inf" and ".5", which are not numbers in JSON.
  const bool digit = !text.empty() && (text.back() >= '0' && text.back() <= '9') &&
                     (text.front() == '-' || (text.front() >= '0' && text.front() <= '9'));
  return digit && error == std::errc() && rest == end;
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
        object_(tree.add(Type::Object, nullptr)) {
    object_.position = place(0);
    tree.root = &object_;
  }

  void read(bool named) {
    std::size_t from = 0;
    if (named) {
      from = std::min(text_.find(':'), text_.size());
      add("kind", 0, text_.substr(0, from), 0);
      if (from == text_.size()) return;
      ++from;
    }
    while (from <= text_.size()) {
      const auto end = end_of_part(text_, from);
      read_part(from, end);
      from = end + 1;
    }
  }

 private:
  static Position place(std::size_t column) { return {1, static_cast<int>(column) + 1}; }

  void read_part(std::size_t from, std::size_t end) {
    const auto part = text_.substr(from, end - from);
    const auto equals = part.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      problems_.error(place(from), "", "\"" + std::string(part) + "\" is not KEY=VALUE");
      return;
    }
    const auto key = part.substr(0, equals);
    if (object_.member(key) != nullptr) {
      problems_.error(place(from), "/" + std::string(key), "the key stands there twice");
      return;
    }
    add(key, from, part.substr(equals + 1), from + equals + 1);
  }

  void add(std::string_view key, std::size_t key_at, std::string_view value, std::size_t at) {
    const bool boolean = value == "true" || value == "false";
    const auto type = boolean ? Type::Boolean : is_number(value) ? Type::Number : Type::String;
    auto& node = tree_.add(type, &object_);
    node.boolean = value == "true";
    node.text = value;
    node.key = key;
    node.key_position = place(key_at);
    node.position = place(at);
    object_.children.push_back(&node);
  }

  std::string_view text_;
  JsonTree& tree_;
  Problems& problems_;
  JsonNode& object_;
};

}  // namespace

void read_text(std::string_view text, bool named, JsonTree& tree, Problems& problems) {
  const auto first = text.find_first_not_of(" \t\r\n");
  const bool json = first != std::string_view::npos && text[first] == '{';
  if (json) return read_json(text, tree, problems);
  ShortForm(text, tree, problems).read(named);
}

}  // namespace httpretry::simulation
