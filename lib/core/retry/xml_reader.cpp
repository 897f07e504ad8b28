#include "body_reader.hpp"
#include "lib/core/base/text.hpp"

#include <algorithm>
#include <utility>

namespace httpretry::policy {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

std::string_view local_name(std::string_view name) {
  return name.substr(name.find(':') + 1);  // npos + 1 is 0
}

// Returns the character of "amp" or "#38", or 0 if it is not ASCII or not defined by XML.
char entity(std::string_view name) {
  constexpr std::pair<std::string_view, char> kNamed[] = {
      {"lt", '<'}, {"gt", '>'}, {"amp", '&'}, {"quot", '"'}, {"apos", '\''}};
  for (const auto& [known, c] : kNamed) {
    if (name == known) return c;
  }
  if (!name.starts_with('#')) return '\0';
  const auto hex = name.starts_with("#x");
  const auto code = to_number<unsigned>(name.substr(hex ? 2 : 1), hex ? 16 : 10).value_or(0);
  return code < 0x80 ? static_cast<char>(code) : '\0';
}

// Leaves unknown entities as they are.
void append_decoded(std::string& to, std::string_view text) {
  while (!text.empty()) {
    const auto amp = std::min(text.find('&'), text.size());
    to.append(text.substr(0, amp));
    text.remove_prefix(amp);
    if (text.empty()) return;
    const auto end = text.substr(0, 12).find(';');  // no entity for an ASCII character is longer
    const auto c = end == std::string_view::npos ? '\0' : entity(text.substr(1, end - 1));
    to.push_back(c == '\0' ? '&' : c);
    text.remove_prefix(c == '\0' ? 1 : end + 1);
  }
}

std::string_view without_spaces(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  return text.substr(0, text.find_last_not_of(kSpace) + 1);
}

class Finder {
 public:
  Finder(std::string_view xml, std::span<const std::string_view> paths)
      : rest_(xml), paths_(paths) {}

  std::vector<BodyValue> run() {
    while (good_ && !rest_.empty()) {
      const auto text = take(std::min(rest_.find('<'), rest_.size()));
      if (collecting()) append_decoded(open_.back().text, text.substr(0, kBodyText));
      if (!rest_.empty()) markup();
    }
    return std::move(found_);
  }

 private:
  struct Element {
    std::string_view name;
    std::string text;
  };

  [[nodiscard]] bool collecting() const {
    return !open_.empty() && open_.back().text.size() < kBodyText;
  }
  void markup() {
    if (skip("<!--")) {
      take_until("-->");
    } else if (skip("<![CDATA[")) {
      const auto data = take_until("]]>");
      if (collecting()) open_.back().text.append(data.substr(0, kBodyText));
    } else if (skip("<?")) {
      take_until("?>");
    } else if (skip("<!")) {
      good_ = false;
    } else if (skip("</")) {
      const auto name = take_until(">");
      close(name.substr(0, name.find_last_not_of(kSpace) + 1));
    } else {
      skip("<");
      open(start_tag());
    }
  }

  std::string_view take(std::size_t size) {
    const auto taken = rest_.substr(0, size);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  bool skip(std::string_view start) {
    const auto found = rest_.starts_with(start);
    if (found) take(start.size());
    return found;
  }
  // Returns the text before `end`, and skips `end`.
  std::string_view take_until(std::string_view end) {
    const auto at = rest_.find(end);
    good_ = good_ && at != std::string_view::npos;
    const auto before = take(good_ ? at : 0);
    if (good_) skip(end);
    return before;
  }
  // Reads a start tag without its brackets. A ">" inside an attribute value does not end the tag.
  std::string_view start_tag() {
    auto at = rest_.find_first_of("\"'<>");
    while (at < rest_.size() && (rest_[at] == '"' || rest_[at] == '\'')) {
      const auto closing = rest_.find(rest_[at], at + 1);
      at = closing == std::string_view::npos ? closing : rest_.find_first_of("\"'<>", closing + 1);
    }
    good_ = good_ && rest_.substr(std::min(at, rest_.size())).starts_with('>');
    const auto inside = take(good_ ? at : 0);
    if (good_) skip(">");
    return inside;
  }

  void open(std::string_view inside) {
    const auto empty = inside.ends_with('/');
    if (empty) inside.remove_suffix(1);
    const auto name = inside.substr(0, inside.find_first_of(kSpace));
    const bool second_root = open_.empty() && rooted_;
    good_ = good_ && !name.empty() && open_.size() < kBodyDepth && !second_root;
    if (!good_) return;
    rooted_ = true;
    open_.push_back({name, {}});
    path_.append("/").append(local_name(name));
    if (empty) close(name);
  }
  void close(std::string_view name) {
    good_ = good_ && !open_.empty() && open_.back().name == name;
    if (!good_) return;
    keep(without_spaces(open_.back().text));
    path_.resize(path_.size() - local_name(name).size() - 1);
    open_.pop_back();
  }
  void keep(std::string_view text) {
    for (const auto path : paths_) {
      if (found_.size() == kBodyValues) return;
      if (matches(path)) found_.push_back({path, std::string(text.substr(0, kBodyText)), true});
    }
  }
  // Returns whether the innermost open element is at `path`.
  [[nodiscard]] bool matches(std::string_view path) const {
    return path == (path.starts_with('/') ? path_ : local_name(open_.back().name));
  }

  std::string_view rest_;
  std::span<const std::string_view> paths_;
  std::vector<Element> open_;  // outermost first
  std::string path_;           // of the innermost element: "/Error/Code"
  std::vector<BodyValue> found_;
  bool rooted_ = false;  // the root element has begun
  bool good_ = true;     // no error so far
};

}  // namespace

std::vector<BodyValue> xml_values(std::string_view xml, std::span<const std::string_view> paths) {
  return Finder(xml, paths).run();
}

}  // namespace httpretry::policy
