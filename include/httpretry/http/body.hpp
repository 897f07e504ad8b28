#pragma once

#include <httpretry/export.hpp>

#include <httpretry/http/headers.hpp>
#include <httpretry/http/result.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace httpretry {

class PausingReader;

// BodyReader reads a body once, from beginning to end. One thread uses it at a time.
class HTTPRETRY_API BodyReader {
 public:
  virtual ~BodyReader();
  // Reads bytes into `into`, which need not be filled, and returns their number; 0 means the end.
  // An error ends the transfer. Must not block, because that would hold up all calls of the loop.
  // If the data may have to be waited for, use a PausingReader or an awaited_body
  // (awaited_body.hpp).
  virtual Result<std::size_t> read(std::span<char> into) = 0;
  // Returns the number of bytes that remain, or nullopt if it is unknown. A body of unknown size is
  // sent chunked.
  [[nodiscard]] virtual std::optional<std::uint64_t> size() const;

  // `read` returns kPause if no data is available yet; `pausing` then returns the reader to wait
  // for. Only for a PausingReader, and for a reader that contains one.
  static constexpr std::size_t kPause = ~std::size_t{0};
  virtual PausingReader* pausing();
};

// Body is the content that a request sends: bytes in memory, a file, or what a function generates.
// It is a cheap handle to shared immutable data.
//
// Every attempt opens its own reader, so a retry starts at the first byte. If a body can be read
// only once and has been read, the request is not sent again with an empty body; the call ends with
// Reason::NotReplayable.
class HTTPRETRY_API Body {
 public:
  // Fills a buffer and returns the number of bytes written; 0 means the end. Must not block.
  using Generator = std::function<std::size_t(std::span<char>)>;
  // Opens the body for one attempt; see BodyReader.
  using Opener = std::function<Result<std::unique_ptr<BodyReader>>()>;

  // No body. A POST still sends "Content-Length: 0".
  Body() = default;
  Body(std::string bytes);  // NOLINT(google-explicit-constructor)
  Body(const char* bytes);  // NOLINT(google-explicit-constructor)
  // Returns a body with the content of a regular file from byte `offset` on. The file is opened
  // again for each attempt and must not change during the call. A pipe is an error; read it with
  // `once`.
  static Body file(std::string path, std::uint64_t offset = 0);
  // Returns a body that can be opened repeatedly. `open` is called on the thread that drives the
  // call.
  static Body reopened(Opener open);
  // Returns a generated body. `start` returns a generator that begins at the first byte.
  static Body generated(std::function<Generator()> start,
                        std::optional<std::uint64_t> size = std::nullopt);
  // Returns a body that can be read only once. A retry can still send it if no byte has been read
  // yet, for example after a failed connection.
  static Body once(Generator generate, std::optional<std::uint64_t> size = std::nullopt);
  static Body once(std::unique_ptr<BodyReader> reader);

  // Returns whether there is a body.
  [[nodiscard]] bool present() const { return source_ != nullptr; }
  // Returns whether both are handles to the same data.
  [[nodiscard]] bool is_same_as(const Body& other) const { return source_ == other.source_; }
  // Returns whether `open` would currently return a reader of the whole body.
  [[nodiscard]] bool replayable() const;
  // Returns whether two readers may be open at once: there is no body, or it is in memory or in a
  // file.
  [[nodiscard]] bool shareable() const;
  // Returns the bytes of a body in memory, and nullptr for any other body.
  [[nodiscard]] const std::string* bytes() const;
  // Returns a reader at the first byte, or Errc::InvalidRequest with the cause.
  [[nodiscard]] Result<std::unique_ptr<BodyReader>> open() const;

 private:
  friend class Form;
  Body(Opener open, std::function<bool()> replayable);
  struct Source;
  std::shared_ptr<Source> source_;
};

// Form is a multipart/form-data body (RFC 7578), the format in which browsers send forms.
//
//   Form form;
//   form.add("title", "A cat").add_file("picture", "cat.jpg");
//   client.post(url, form);
//
// Files are read while the form is sent, once for each attempt. A form can be sent again if all of
// its parts can.

// One part of a form: a field, a file, or several files.
struct HTTPRETRY_API FormPart {
  FormPart() = default;
  FormPart(std::string field, Body content);

  std::string name;
  Body body;
  std::string file_name;     // empty for a field that is not a file
  std::string content_type;  // if empty: none for a field; derived from the extension for a file
  Headers headers;           // additional headers; a Content-Type here replaces `content_type`
  // Several files in one field, as multipart/mixed. If set, `body` and `file_name` are ignored.
  std::vector<FormPart> files;
};

// Form is an HTML form (multipart/form-data) for Request::set_form: fields and files.
class HTTPRETRY_API Form {
 public:
  Form();  // creates a random boundary

  // Adds a field with a text.
  Form& add(std::string name, std::string value);
  // Adds a local file, under its name without directories.
  Form& add_file(std::string name, std::string path);
  // Throws std::invalid_argument if a name contains a NUL byte, or if the content type is not a
  // valid header value.
  Form& add(FormPart part);

  // Returns the form as a body of type multipart/form-data.
  [[nodiscard]] Body body() const;
  [[nodiscard]] std::string content_type() const;  // includes the boundary

 private:
  std::string boundary_;
  std::vector<FormPart> parts_;
};

// UrlEncoded is a form of names and values in the format of a query: "name=Ann%20Lee&age=30"
// (application/x-www-form-urlencoded).
//
//   client.post(url, UrlEncoded().add("grant_type", "client_credentials"))
class HTTPRETRY_API UrlEncoded {
 public:
  UrlEncoded() = default;
  // Adds a field. Name and value are percent-encoded.
  UrlEncoded& add(std::string_view name, std::string_view value);
  // Returns the encoded fields, "name=Ann&age=7".
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// BodyOf<T> makes a value of type T the body of a request, with its Content-Type:
// Request::post(url, value). It is specialized here for forms, and for JSON in json/nlohmann.hpp. A
// program may specialize it for its own types.
template <class T>
struct BodyOf;
// Sends the fields as application/x-www-form-urlencoded.
template <>
struct BodyOf<UrlEncoded> {
  static Body body(const UrlEncoded& form) { return form.text(); }
  static std::string content_type(const UrlEncoded& /*form*/) {
    return "application/x-www-form-urlencoded";
  }
};
// Sends the form as multipart/form-data.
template <>
struct BodyOf<Form> {
  static Body body(const Form& form) { return form.body(); }
  static std::string content_type(const Form& form) { return form.content_type(); }
};

// A type that BodyOf makes a body.
template <class T>
concept HasBody = requires(const T& value) {
  { BodyOf<T>::body(value) } -> std::convertible_to<Body>;
  { BodyOf<T>::content_type(value) } -> std::convertible_to<std::string>;
};

}  // namespace httpretry
