#include <httpretry/http/body.hpp>
#include <httpretry/http/url.hpp>

#include "lib/core/base/random.hpp"

#include <algorithm>
#include <stdexcept>

namespace httpretry {
namespace {

// Returns a name in quotes, escaped as the HTML standard requires, so that it cannot end its header
// line.
std::string in_quotes(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    switch (c) {
      case '"': result += "%22"; break;
      case '\r': result += "%0D"; break;
      case '\n': result += "%0A"; break;
      default: result += c;
    }
  }
  return result + "\"";
}

// Returns the media type for the ending of a file name: "image/png" for "photo.PNG".
std::string_view type_of(std::string_view file_name) {
  constexpr std::pair<std::string_view, std::string_view> kTypesByEnding[] = {
      {".gif", "image/gif"},      {".jpg", "image/jpeg"},    {".jpeg", "image/jpeg"},
      {".png", "image/png"},      {".svg", "image/svg+xml"}, {".txt", "text/plain"},
      {".htm", "text/html"},      {".html", "text/html"},    {".pdf", "application/pdf"},
      {".xml", "application/xml"}};
  const auto dot = std::min(file_name.rfind('.'), file_name.size());
  const auto ending = file_name.substr(dot);  // empty without a dot
  for (const auto& [known_ending, type] : kTypesByEnding) {
    if (equal_ignoring_case(ending, known_ending)) return type;
  }
  return "application/octet-stream";
}

// Returns the Content-Type that a part gets, or "" if it gets none in addition to its headers.
std::string content_type_of(const FormPart& part) {
  if (part.headers.contains("Content-Type")) return {};
  if (!part.content_type.empty() || part.file_name.empty()) return part.content_type;
  return std::string(type_of(part.file_name));
}

// Returns the boundary between several files in one field of a form with `boundary`. Neither
// boundary is a prefix of the other.
std::string inner_boundary(const std::string& boundary) { return "files-" + boundary; }

// Returns the headers of a part, with the empty line at their end. `disposition` is the value of
// Content-Disposition without the file name.
std::string head_of(const FormPart& part, const std::string& disposition,
                    const std::string& boundary) {
  std::string head = "Content-Disposition: " + disposition;
  if (!part.files.empty()) {
    head += "\r\nContent-Type: multipart/mixed; boundary=" + inner_boundary(boundary);
  } else {
    if (!part.file_name.empty()) head += "; filename=" + in_quotes(part.file_name);
    if (const auto type = content_type_of(part); !type.empty()) head += "\r\nContent-Type: " + type;
  }
  head += "\r\n";
  for (const auto field : part.headers) {
    head.append(field.name).append(": ").append(field.value).append("\r\n");
  }
  return head + "\r\n";
}

// The form as a sequence of bodies: the text between the parts, and the parts.
using Pieces = std::vector<Body>;

// Appends a part, with all its files, to `pieces`. `text` is what precedes the next body: it
// becomes a piece of its own when that body follows.
void add_part(const FormPart& part, const std::string& disposition, const std::string& boundary,
              Pieces& pieces, std::string& text) {
  text += "--" + boundary + "\r\n" + head_of(part, disposition, boundary);
  if (part.files.empty()) {
    pieces.emplace_back(std::exchange(text, "\r\n"));  // a part ends with a line break
    if (part.body.present()) pieces.push_back(part.body);
    return;
  }
  for (const auto& file : part.files)
    add_part(file, "attachment", inner_boundary(boundary), pieces, text);
  text += "--" + inner_boundary(boundary) + "--\r\n\r\n";
}

// Throws std::invalid_argument if a part of the form field cannot be sent.
void throw_if_invalid(const FormPart& part, const std::string& field) {
  for (const auto* text : {&part.name, &part.file_name}) {
    if (text->find('\0') != std::string::npos) {
      throw std::invalid_argument("a name in a form contains a NUL byte");
    }
  }
  if (!valid_header_value(part.content_type)) {
    throw std::invalid_argument("the content type of form field \"" + field +
                                "\" contains a control byte");
  }
  for (const auto& file : part.files) throw_if_invalid(file, field);
}

// Reads bodies one after the other.
class PiecesReader final : public BodyReader {
 public:
  using Readers = std::vector<std::unique_ptr<BodyReader>>;
  explicit PiecesReader(Readers readers) : readers_(std::move(readers)) {
    std::uint64_t sum = 0;
    for (const auto& reader : readers_) {
      const auto size = reader->size();
      if (!size) return;  // the size of the form is unknown as well
      sum += *size;
    }
    size_ = sum;
  }

  Result<std::size_t> read(std::span<char> into) override {
    while (current_ < readers_.size()) {
      auto count = readers_[current_]->read(into);
      if (!count || *count > 0) return count;
      readers_[current_++].reset();  // closes its file
    }
    return std::size_t{0};
  }
  [[nodiscard]] std::optional<std::uint64_t> size() const override { return size_; }
  PausingReader* pausing() override { return readers_[current_]->pausing(); }

 private:
  Readers readers_;
  std::size_t current_ = 0;            // the index of the current reader
  std::optional<std::uint64_t> size_;  // empty if the size of a piece is unknown
};

Result<std::unique_ptr<BodyReader>> open_pieces(const Pieces& pieces) {
  PiecesReader::Readers readers;
  for (const auto& piece : pieces) {
    auto reader = piece.open();
    if (!reader) return std::move(reader).error();
    readers.push_back(*std::move(reader));
  }
  return std::unique_ptr<BodyReader>(std::make_unique<PiecesReader>(std::move(readers)));
}

}  // namespace

FormPart::FormPart(std::string field, Body content)
    : name(std::move(field)), body(std::move(content)) {}

Form::Form() : boundary_("httpretry-" + random_hex(16)) {}

Form& Form::add(std::string name, std::string value) {
  return add(FormPart(std::move(name), Body(std::move(value))));
}

Form& Form::add_file(std::string name, std::string path) {
  FormPart part(std::move(name), Body::file(path));
  const auto slash = path.rfind('/');
  part.file_name = slash == std::string::npos ? std::move(path) : path.substr(slash + 1);
  return add(std::move(part));
}

Form& Form::add(FormPart part) {
  throw_if_invalid(part, part.name);
  parts_.push_back(std::move(part));
  return *this;
}

Body Form::body() const {
  Pieces pieces;
  std::string text;
  for (const auto& part : parts_) {
    add_part(part, "form-data; name=" + in_quotes(part.name), boundary_, pieces, text);
  }
  pieces.emplace_back(text + "--" + boundary_ + "--\r\n");
  const auto shared = std::make_shared<const Pieces>(std::move(pieces));
  return {[shared] { return open_pieces(*shared); },
          [shared] { return std::ranges::all_of(*shared, &Body::replayable); }};
}

std::string Form::content_type() const { return "multipart/form-data; boundary=" + boundary_; }

UrlEncoded& UrlEncoded::add(std::string_view name, std::string_view value) {
  // Made first, because `name` and `value` may be views into `text_`.
  const auto field = percent_encode(name) + "=" + percent_encode(value);
  if (!text_.empty()) text_ += '&';
  text_ += field;
  return *this;
}

}  // namespace httpretry
