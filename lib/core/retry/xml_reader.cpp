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

// Appends the text with its entities replaced. Leaves unknown entities as they are.
void append_decoded(std::string& output, std::string_view text) {
  while (!text.empty()) {
    const auto ampersand = std::min(text.find('&'), text.size());
    output.append(text.substr(0, ampersand));
    text.remove_prefix(ampersand);
    if (text.empty()) return;
    const auto end = text.substr(0, 12).find(';');  // no entity for an ASCII character is longer
    const auto c = end == std::string_view::npos ? '\0' : entity(text.substr(1, end - 1));
    output.push_back(c == '\0' ? '&' : c);
    text.remove_prefix(c == '\0' ? 1 : end + 1);
  }
}

std::string_view without_spaces(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  return text.substr(0, text.find_last_not_of(kSpace) + 1);
}

// Reads XML from its beginning, and collects the texts of the elements at the requested paths.
// Stops at the first error.
class Finder {
 public:
  Finder(std::string_view xml, std::span<const std::string_view> paths)
      : rest_(xml), paths_(paths) {}

  std::vector<BodyValue> run() {
    while (well_formed_ && !rest_.empty()) {
      const auto text = take(std::min(rest_.find('<'), rest_.size()));
      if (collecting()) append_decoded(open_.back().text, text.substr(0, kBodyText));
      if (!rest_.empty()) read_markup();
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
  // Reads the markup that begins with the "<" at the front of the text that is left (`rest_`).
  // Start and end tags open and close elements. Skips everything else except the text in CDATA
  // sections, which belongs to the innermost open element like other text. Ends the reading, as
  // after an error, at a document type: it may define entities, which this reader does not know.
  void read_markup() {
    if (skip("<!--")) {
      take_until("-->");
    } else if (skip("<![CDATA[")) {
      const auto data = take_until("]]>");
      // A text with several pieces may become longer than kBodyText. `add_value` shortens it.
      if (collecting()) open_.back().text.append(data.substr(0, kBodyText));
    } else if (skip("<?")) {  // an instruction, such as <?xml version="1.0"?>
      take_until("?>");
    } else if (skip("<!")) {  // <!DOCTYPE
      well_formed_ = false;
    } else if (skip("</")) {
      const auto name = take_until(">");  // spaces may follow the name
      close(name.substr(0, name.find_last_not_of(kSpace) + 1));
    } else {
      skip("<");
      open(take_start_tag());
    }
  }

  std::string_view take(std::size_t size) {
    const auto taken = rest_.substr(0, size);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  // Returns whether `start` follows, and skips it.
  bool skip(std::string_view start) {
    const bool follows = rest_.starts_with(start);
    if (follows) take(start.size());
    return follows;
  }
  // Returns the text before `end`, and skips `end`. Ends the reading if `end` does not follow.
  std::string_view take_until(std::string_view end) {
    const auto before = take(rest_.find(end));
    well_formed_ = skip(end);
    return before;
  }
  // Reads a start tag up to its ">", and returns the text before that. A ">" inside a quoted
  // attribute value does not end the tag. Ends the reading if the tag has no ">".
  std::string_view take_start_tag() {
    auto position = rest_.find_first_of("\"'<>");
    while (position < rest_.size() && (rest_[position] == '"' || rest_[position] == '\'')) {
      const auto closing_quote = rest_.find(rest_[position], position + 1);
      if (closing_quote == std::string_view::npos) break;
      position = rest_.find_first_of("\"'<>", closing_quote + 1);
    }
    const auto inside = take(position);
    well_formed_ = skip(">");
    return inside;
  }

  // Begins the element of a start tag, and ends it if the tag is "<name/>". `tag` is the text
  // between the brackets.
  void open(std::string_view tag) {
    const bool is_empty_element = tag.ends_with('/');
    if (is_empty_element) tag.remove_suffix(1);
    const auto name = tag.substr(0, tag.find_first_of(kSpace));
    const bool second_root = open_.empty() && root_begun_;
    well_formed_ = well_formed_ && !name.empty() && open_.size() < kBodyDepth && !second_root;
    if (!well_formed_) return;
    root_begun_ = true;
    open_.push_back({name, {}});
    path_.append("/").append(local_name(name));
    if (is_empty_element) close(name);
  }
  void close(std::string_view name) {
    well_formed_ = well_formed_ && !open_.empty() && open_.back().name == name;
    if (!well_formed_) return;
    add_value(without_spaces(open_.back().text));
    path_.resize(path_.size() - local_name(name).size() - 1);
    open_.pop_back();
  }
  // Adds the text of the innermost open element for each path that it is at.
  void add_value(std::string_view text) {
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
  bool root_begun_ = false;  // the root element has begun
  bool well_formed_ = true;  // no error so far
};

}  // namespace

std::vector<BodyValue> xml_values(std::string_view xml, std::span<const std::string_view> paths) {
  return Finder(xml, paths).run();
}

}  // namespace httpretry::policy
