#include "lib/json/quick_reader.hpp"

#include "lib/http/text.hpp"

#include <algorithm>
#include <array>

namespace httpretry {
namespace {

constexpr std::size_t kLongestNumber = 100;  // one that is no longer is in the range of a double

// True: the byte stands for itself in a string.
constexpr auto kPlain = [] {
  std::array<bool, 256> plain{};
  for (std::size_t byte = 0x20; byte < 0x80; ++byte) plain[byte] = true;
  plain['"'] = plain['\\'] = false;
  return plain;
}();

bool is_plain(char c) { return kPlain[static_cast<unsigned char>(c)]; }

bool has_duplicates(const JsonNode& object) {
  constexpr std::size_t kFew = 16;
  const auto& members = object.children;
  if (members.size() <= kFew) {
    for (std::size_t i = 1; i < members.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (members[i]->key == members[j]->key) return true;
      }
    }
    return false;
  }
  std::vector<std::string_view> names;
  for (const auto* member : members) names.push_back(member->key);
  std::sort(names.begin(), names.end());
  return std::adjacent_find(names.begin(), names.end()) != names.end();
}

}  // namespace

QuickReader::QuickReader(std::string_view text, JsonTree& tree)
    : text_(text), tree_(tree), most_nodes_(tree.size() + kMaxJsonNodes) {
  if (text_.starts_with("\xEF\xBB\xBF")) at_ = line_start_ = 3;  // a byte order mark
}

const JsonNode* QuickReader::read() {
  skip_blanks();
  auto& root = tree_.add(JsonNode::Type::Null, nullptr);
  if (!read_value(root, 0)) return nullptr;
  skip_blanks();
  return at_ == text_.size() ? &root : nullptr;
}

bool QuickReader::read_value(JsonNode& node, std::size_t depth) {
  using Type = JsonNode::Type;
  if (tree_.size() > most_nodes_) return false;
  node.position = position();
  const bool container = front() == '{' || front() == '[';
  if (container && depth == kMaxJsonDepth) return false;
  switch (front()) {
    case '{': node.type = Type::Object; return read_object(node, depth);
    case '[': node.type = Type::Array; return read_array(node, depth);
    case '"': node.type = Type::String; return read_string(node.text);
    case 'n': node.type = Type::Null; return read_word("null");
    case 'f': node.type = Type::Boolean; return read_word("false");
    case 't':
      node.type = Type::Boolean;
      node.boolean = true;
      return read_word("true");
    default: node.type = Type::Number; return read_number(node);
  }
}

bool QuickReader::read_object(JsonNode& object, std::size_t depth) {
  ++at_;
  skip_blanks();
  if (take('}')) return true;
  do {
    skip_blanks();
    auto& member = tree_.add(JsonNode::Type::Null, &object);
    member.key_position = position();
    if (front() != '"' || !read_string(member.key)) return false;
    skip_blanks();
    if (!take(':') || !read_child(object, member, depth)) return false;
  } while (take(','));
  return take('}') && !has_duplicates(object);
}

bool QuickReader::read_array(JsonNode& array, std::size_t depth) {
  ++at_;
  skip_blanks();
  if (take(']')) return true;
  do {
    if (!read_child(array, tree_.add(JsonNode::Type::Null, &array), depth)) return false;
  } while (take(','));
  return take(']');
}

bool QuickReader::read_child(JsonNode& parent, JsonNode& child, std::size_t depth) {
  skip_blanks();
  parent.children.push_back(&child);
  if (!read_value(child, depth + 1)) return false;
  skip_blanks();
  return true;
}

bool QuickReader::read_string(std::string_view& text) {
  const auto begin = ++at_;
  for (;;) {
    while (at_ < text_.size() && is_plain(text_[at_])) ++at_;
    if (front() == '\\') return read_escaped(begin, text);
    if (front() == '"') break;
    const auto length = at_ < text_.size() ? character_length(text_.substr(at_)) : 0;
    if (length < 2) return false;
    at_ += length;
  }
  text = text_.substr(begin, at_++ - begin);
  return true;
}

// At the first escape of a string that began there.
bool QuickReader::read_escaped(std::size_t begin, std::string_view& text) {
  constexpr std::string_view kNames = "\"\\/bfnrt";
  constexpr std::string_view kCharacters = "\"\\/\b\f\n\r\t";
  std::string made(text_.substr(begin, at_ - begin));
  while (front() != '"') {
    if (front() == '\\') {
      const auto which = at_ + 1 < text_.size() ? kNames.find(text_[at_ + 1]) : kNames.npos;
      if (which == kNames.npos) return false;
      made += kCharacters[which];
      at_ += 2;
      continue;
    }
    const auto length = at_ < text_.size() ? character_length(text_.substr(at_)) : 0;
    if (length == 0 || (length == 1 && !is_plain(text_[at_]))) return false;
    made += text_.substr(at_, length);
    at_ += length;
  }
  ++at_;
  text = tree_.keep(std::move(made));
  return true;
}

bool QuickReader::read_number(JsonNode& node) {
  const auto begin = at_;
  const auto digits = [&] {
    const auto first = at_;
    while (is_digit(front())) ++at_;
    return at_ - first;
  };
  if (front() == '-') ++at_;
  const bool zero = front() == '0';
  const auto whole = digits();
  if (whole == 0 || (zero && whole > 1)) return false;
  if (front() == '.') {
    ++at_;
    if (digits() == 0) return false;
  }
  node.text = text_.substr(begin, at_ - begin);
  return front() != 'e' && front() != 'E' && node.text.size() <= kLongestNumber;
}

bool QuickReader::read_word(std::string_view word) {
  if (text_.substr(at_, word.size()) != word) return false;
  at_ += word.size();
  return true;
}

void QuickReader::skip_blanks() {
  for (; at_ < text_.size(); ++at_) {
    const char c = text_[at_];
    if (c != ' ' && c != '\t' && c != '\r' && c != '\n') return;
    if (c != '\n') continue;
    ++line_;
    line_start_ = at_ + 1;
  }
}

bool QuickReader::take(char c) {
  if (front() != c) return false;
  ++at_;
  return true;
}

}  // namespace httpretry
