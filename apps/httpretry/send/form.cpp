#include "send/form.hpp"

#include "cli/args.hpp"
#include "cli/input.hpp"
#include "lib/core/base/text.hpp"
#include "send/data.hpp"

#include <string_view>
#include <vector>

namespace httpretry::cli {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

std::string file_name(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

// Returns the headers in a file, one per line. Leaves out empty lines, and comments, which begin
// with "#". A line that begins with a space continues the previous header. Throws ReadError. The
// wait for a pipe ends when the descriptor `cancel` becomes readable.
std::vector<std::string> header_lines(const std::string& file, int cancel) {
  std::vector<std::string> lines;
  auto text = read_named(file, kMaxTextFile, cancel);
  for (std::string_view rest = text; !rest.empty();) {
    auto line = take_until(rest, '\n');
    line = line.substr(0, line.find_last_not_of(kBlanks) + 1);
    if (line.empty() || line.front() == '#') continue;
    if (!lines.empty() && kBlanks.find(line.front()) != std::string_view::npos) {
      lines.back() += line;
    } else {
      lines.emplace_back(line);
    }
  }
  return lines;
}

// FieldReader parses the content of a field. The content may be secret, so messages contain only
// the name of the field.
class FieldReader {
 public:
  FieldReader(std::string_view name, std::string_view content, int cancel)
      : name_(name), rest_(content), cancel_(cancel) {}

  // Reads text, the text in a file, or one or more files.
  void read_into(FormPart& part) {
    if (rest_.starts_with('@')) return read_files(part);
    const bool from_file = rest_.starts_with('<');
    if (from_file) rest_.remove_prefix(1);
    const auto content = take_quoted_or_plain('\0');
    part.body = Body(from_file ? read_named(content, kMaxDataFile, cancel_) : content);
    read_attributes(part, '\0');
  }

 private:
  // Reads the content "@FILE;ATTRIBUTES,FILE;ATTRIBUTES…" of a field into the part: paths of files,
  // each with its attributes such as ";type=text/plain". A single file becomes the body of the
  // part; several files become `part.files`, which are sent together under the name of the field.
  // Takes the text that it reads from the front of `rest_`.
  void read_files(FormPart& part) {
    while (!rest_.empty()) {
      rest_.remove_prefix(1);  // the "@", or the comma before another file
      FormPart file;
      const auto path = take_quoted_or_plain(',');
      file.body = upload_body(path, cancel_);
      file.file_name = file_name(path);
      read_attributes(file, ',');
      part.files.push_back(std::move(file));
    }
    if (part.files.size() > 1) return;
    auto only_file = std::move(part.files.front());
    only_file.name = std::move(part.name);
    part = std::move(only_file);
  }

  // Takes text in quotes, with \" and \\ as escapes, or text up to ";" or `end`.
  std::string take_quoted_or_plain(char end) {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(kBlanks), rest_.size()));
    std::string text;
    if (rest_.starts_with('"') && take_quoted(text)) return text;
    return std::string(trimmed(take_plain(end)));
  }

  // Removes text in quotes and the spaces after it. `text` receives it without its escapes. Returns
  // false, and removes nothing, if the second quote is missing.
  bool take_quoted(std::string& text) {
    for (std::size_t i = 1; i < rest_.size(); ++i) {
      if (rest_[i] == '"') {
        rest_.remove_prefix(i + 1);
        rest_.remove_prefix(std::min(rest_.find_first_not_of(kBlanks), rest_.size()));
        return true;
      }
      const auto next = i + 1 < rest_.size() ? rest_[i + 1] : '\0';
      if (rest_[i] == '\\' && (next == '\\' || next == '"')) ++i;
      text += rest_[i];
    }
    text.clear();  // without a second quote, the first has no special meaning
    return false;
  }

  // Takes the text up to ";" or `end` ('\0': only up to ";").
  std::string_view take_plain(char end) {
    std::size_t at = 0;
    while (at < rest_.size() && rest_[at] != ';' && (end == '\0' || rest_[at] != end)) ++at;
    const auto taken = rest_.substr(0, at);
    rest_.remove_prefix(at);
    return taken;
  }

  bool take_key(std::string_view key) {
    if (!rest_.starts_with(key)) return false;
    rest_.remove_prefix(key.size());
    return true;
  }

  // Applies the attributes after the content to the part, for example ";type=text/html;filename=a",
  // and removes them from the front of `rest_`. They end at the character `end`, or at the end of
  // the text. Throws UsageError for an unknown attribute.
  void read_attributes(FormPart& part, char end) {
    bool has_type = false;
    while (!rest_.empty() && rest_.front() == ';') {
      rest_.remove_prefix(1);
      rest_.remove_prefix(std::min(rest_.find_first_not_of(kBlanks), rest_.size()));
      if (take_key("filename=")) {
        part.file_name = take_quoted_or_plain(end);
      } else if (take_key("headers=")) {
        read_headers(part, end);
      } else if (!has_type && take_key("type=")) {
        part.content_type = checked_type(trimmed(take_plain(end)));
        has_type = true;
      } else if (has_type) {  // a parameter of the type, such as ";charset=utf-8"
        part.content_type.append(";").append(trimmed(take_plain(end)));
      } else {
        throw not_an_attribute();
      }
    }
    if (!rest_.empty() && rest_.front() != end) throw not_an_attribute();
  }

  // Adds the headers of ";headers=": one header, or those in a file after "@" or "<".
  void read_headers(FormPart& part, char end) {
    const bool from_file = rest_.starts_with('@') || rest_.starts_with('<');
    if (from_file) rest_.remove_prefix(1);
    const auto text = take_quoted_or_plain(end);
    for (const auto& line : from_file ? header_lines(text, cancel_) : std::vector{text}) {
      const auto colon = line.find(':');
      if (colon == std::string::npos) {
        throw bad("expected NAME: VALUE after ;headers=");
      }
      part.headers.add(line.substr(0, colon), trimmed(std::string_view(line).substr(colon + 1)));
    }
  }

  [[nodiscard]] std::string checked_type(std::string_view type) const {
    const auto slash = type.find('/');
    if (slash == std::string_view::npos || slash == 0 || slash + 1 == type.size()) {
      throw bad("expected a content type after ;type=, such as text/html");
    }
    return std::string(type);
  }

  [[nodiscard]] UsageError not_an_attribute() const {
    return bad(
        "expected ;type=, ;filename= or ;headers= after the content; put content with \";\" in "
        "quotes");
  }

  [[nodiscard]] UsageError bad(const std::string& what) const {
    return UsageError("option -F, \"" + std::string(name_) + "\": " + what);
  }

  std::string_view name_;
  std::string_view rest_;
  int cancel_;
};

}  // namespace

// Returns the part of a multipart/form-data body for one -F or --form-string, "NAME=CONTENT". For
// -F, CONTENT may name files, which are read; for --form-string it is literal text. Throws
// UsageError and ReadError. The wait for a pipe ends when the descriptor `cancel` becomes readable.
FormPart form_part(const FormField& field, int cancel) {
  const auto& value = field.value;
  const auto equals = value.find('=');
  const bool literal = field.syntax == FormField::Syntax::Literal;
  if (equals == std::string::npos || equals == 0) {
    const auto* flag = literal ? "--form-string" : "-F";
    throw UsageError(std::string("option ") + flag + ": expected NAME=CONTENT, found no name");
  }
  FormPart part;
  part.name = value.substr(0, equals);
  const auto content = std::string_view(value).substr(equals + 1);
  if (literal) {
    part.body = Body(std::string(content));
  } else {
    FieldReader(part.name, content, cancel).read_into(part);
  }
  return part;
}

}  // namespace httpretry::cli
