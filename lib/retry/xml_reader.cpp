#include "lib/retry/body_reader.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace httpretry::policy {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

std::string_view local_name(std::string_view name) {
  const auto colon = name.find(':');
  return colon == std::string_view::npos ? name : name.substr(colon + 1);
}

// "&amp;" as "&"; what is no entity of XML itself, and what is not ASCII, stays as it is spelled.
char entity(std::string_view name) {
  if (name == "lt") return '<';
  if (name == "gt") return '>';
  if (name == "amp") return '&';
  if (name == "quot") return '"';
  if (name == "apos") return '\'';
  if (name.substr(0, 1) != "#") return '\0';
  const auto hex = name.substr(1, 1) == "x";
  const auto digits = name.substr(hex ? 2 : 1);
  int code = 0;
  const auto read =
      std::from_chars(digits.data(), digits.data() + digits.size(), code, hex ? 16 : 10);
  const auto whole = read.ec == std::errc() && read.ptr == digits.data() + digits.size();
  return whole && code > 0 && code < 0x80 ? static_cast<char>(code) : '\0';
}

void append_decoded(std::string& to, std::string_view text) {
  while (!text.empty()) {
    const auto amp = text.find('&');
    to.append(text.substr(0, amp));
    if (amp == std::string_view::npos) return;
    text.remove_prefix(amp);
    const auto end = text.substr(0, 12).find(';');
    const auto c = end == std::string_view::npos ? '\0' : entity(text.substr(1, end - 1));
    to.push_back(c == '\0' ? '&' : c);
    text.remove_prefix(c == '\0' ? 1 : end + 1);
  }
}

class Finder {
 public:
  Finder(std::string_view xml, std::span<const std::string_view> paths)
      : rest_(xml), paths_(paths) {}

  std::vector<BodyValue> run() {
    while (good_ && !rest_.empty()) {
      text(rest_.substr(0, rest_.find('<')));
      if (!rest_.empty()) markup();
    }
    return std::move(found_);
  }

 private:
  struct Element {
    std::string_view name;
    std::string text;
    bool wanted = false;
  };

  void text(std::string_view run) {
    rest_.remove_prefix(run.size());
    if (collecting()) append_decoded(way_.back().text, run.substr(0, kBodyText));
  }
  [[nodiscard]] bool collecting() const {
    return !way_.empty() && way_.back().wanted && way_.back().text.size() < kBodyText;
  }

  void markup() {
    if (take("<!--")) {
      until("-->");
    } else if (take("<![CDATA[")) {
      const auto data = until("]]>");
      if (collecting()) way_.back().text.append(data.substr(0, kBodyText));
    } else if (take("<?")) {
      until("?>");
    } else if (take("<!")) {
      good_ = false;
    } else if (take("</")) {
      const auto name = until(">");
      close(name.substr(0, name.find_last_not_of(kSpace) + 1));
    } else {
      take("<");
      open(tag());
    }
  }
  bool take(std::string_view start) {
    if (rest_.substr(0, start.size()) != start) return false;
    rest_.remove_prefix(start.size());
    return true;
  }
  // What stands before `end`, which is taken as well.
  std::string_view until(std::string_view end) {
    const auto at = rest_.find(end);
    good_ = good_ && at != std::string_view::npos;
    if (!good_) return {};
    const auto before = rest_.substr(0, at);
    rest_.remove_prefix(at + end.size());
    return before;
  }
  // A start tag without its brackets. A ">" in an attribute's value does not end it.
  std::string_view tag() {
    std::size_t at = 0;
    for (char quote = '\0'; at < rest_.size(); ++at) {
      const auto c = rest_[at];
      if (quote != '\0') {
        quote = c == quote ? '\0' : quote;
      } else if (c == '"' || c == '\'') {
        quote = c;
      } else if (c == '>' || c == '<') {
        break;
      }
    }
    good_ = good_ && at < rest_.size() && rest_[at] == '>';
    if (!good_) return {};
    const auto inside = rest_.substr(0, at);
    rest_.remove_prefix(at + 1);
    return inside;
  }

  void open(std::string_view inside) {
    const auto empty = !inside.empty() && inside.back() == '/';
    if (empty) inside.remove_suffix(1);
    const auto name = inside.substr(0, inside.find_first_of(kSpace));
    good_ = good_ && !name.empty() && way_.size() < kBodyDepth && !(way_.empty() && rooted_);
    if (!good_) return;
    rooted_ = true;
    way_.push_back({name, {}, false});
    way_.back().wanted =
        std::any_of(paths_.begin(), paths_.end(), [this](auto path) { return stands_at(path); });
    if (way_.size() == 1 && hopeless()) good_ = false;
    if (good_ && empty) close(name);
  }
  void close(std::string_view name) {
    good_ = good_ && !way_.empty() && way_.back().name == name;
    if (!good_) return;
    if (way_.back().wanted) keep(way_.back().text);
    way_.pop_back();
  }
  void keep(std::string_view text) {
    const auto first = text.find_first_not_of(kSpace);
    text = first == std::string_view::npos ? std::string_view() : text.substr(first);
    text = text.substr(0, text.find_last_not_of(kSpace) + 1);
    for (std::size_t i = 0; i < paths_.size() && found_.size() < kBodyValues; ++i) {
      if (stands_at(paths_[i])) found_.push_back({i, std::string(text.substr(0, kBodyText)), true});
    }
  }

  [[nodiscard]] bool stands_at(std::string_view path) const {
    if (path.substr(0, 1) != "/") return local_name(way_.back().name) == path;
    for (const auto& element : way_) {
      if (path.substr(0, 1) != "/") return false;
      path.remove_prefix(1);
      const auto step = path.substr(0, path.find('/'));
      if (step != local_name(element.name)) return false;
      path.remove_prefix(step.size());
    }
    return path.empty();
  }
  // Whether no path can lead into this root: a page of HTML need not be read to its end.
  [[nodiscard]] bool hopeless() const {
    const auto root = local_name(way_.front().name);
    return std::none_of(paths_.begin(), paths_.end(), [root](std::string_view path) {
      if (path.substr(0, 1) != "/") return true;
      path.remove_prefix(1);
      return path.substr(0, path.find('/')) == root;
    });
  }

  std::string_view rest_;
  std::span<const std::string_view> paths_;
  std::vector<Element> way_;
  std::vector<BodyValue> found_;
  bool rooted_ = false;
  bool good_ = true;
};

}  // namespace

std::vector<BodyValue> xml_values(std::string_view xml, std::span<const std::string_view> paths) {
  return Finder(xml, paths).run();
}

}  // namespace httpretry::policy
