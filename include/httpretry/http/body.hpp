// Body: what a request sends, and whether that can be read a second time.
//
// A thin handle on shared immutable data. Every attempt opens a reader of its own, so that a retry
// starts at the first byte; a body that can be read only once says so, and is never sent again as
// an empty one: the call ends with `not_replayable` instead.
#pragma once

#include <httpretry/http/headers.hpp>
#include <httpretry/http/result.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace httpretry {

// Reads a body from its beginning to its end, once. Used by one thread at a time.
class HTTPRETRY_API BodyReader {
 public:
  virtual ~BodyReader();
  // Fills `into`, or part of it; 0 is the end. An error ends the transfer.
  virtual Result<std::size_t> read(std::span<char> into) = 0;
  // The number of bytes that are to come, where it is known; else the body goes out chunked.
  [[nodiscard]] virtual std::optional<std::uint64_t> size() const;
};

class HTTPRETRY_API Body {
 public:
  // A function that fills a buffer and says how many bytes it wrote; 0 is the end.
  using Generator = std::function<std::size_t(std::span<char>)>;
  using Opener = std::function<Result<std::unique_ptr<BodyReader>>()>;

  // No body at all. A POST still sends "Content-Length: 0".
  Body() = default;
  Body(std::string bytes);  // NOLINT(google-explicit-constructor)
  Body(const char* bytes);  // NOLINT(google-explicit-constructor)
  // A file from its byte `offset` on, opened anew for each attempt. It must not change while the
  // call lasts.
  static Body file(std::string path, std::uint64_t offset = 0);
  // Anything that can be opened again and again. Called from the thread that drives the call.
  static Body reopened(Opener open);
  // The same from functions that generate it: `start` gives one that begins at the first byte.
  static Body generated(std::function<Generator()> start,
                        std::optional<std::uint64_t> size = std::nullopt);
  // Anything that can be read only once. Where nothing of it was read yet (no connection could be
  // made), it may still be sent.
  static Body once(Generator generate, std::optional<std::uint64_t> size = std::nullopt);

  [[nodiscard]] bool present() const { return source_ != nullptr; }
  // Whether `open` would give the whole body now.
  [[nodiscard]] bool replayable() const;
  // The bytes, where they are in memory; nullptr otherwise.
  [[nodiscard]] const std::string* bytes() const;
  // A reader at the first byte. Errc::InvalidRequest where that is not to be had, with the cause.
  [[nodiscard]] Result<std::unique_ptr<BodyReader>> open() const;

  class Source;  // lib/http/body_source.hpp

 private:
  friend class Form;
  explicit Body(std::shared_ptr<Source> source) : source_(std::move(source)) {}
  std::shared_ptr<Source> source_;
};

// Form: multipart/form-data (RFC 7578), as a browser sends the fields and files of a form.
//
//   Form form;
//   form.add("title", "A cat").add_file("picture", "cat.jpg");
//   client.send(Request::post(url, Body()).set_form(form));
//
// Streamed: files are read while they are sent, and again for each attempt. It can be sent again as
// often as every part of it can be.

struct HTTPRETRY_API FormPart {
  FormPart() = default;
  FormPart(std::string field, Body content);

  std::string name;
  Body body;
  std::string file_name;     // empty: a field, not a file
  std::string content_type;  // empty: text for a field; for a file what its ending says
  Headers headers;           // further ones; a Content-Type among them is the one that counts
  // Several files in one field, as multipart/mixed; `body` and `file_name` are not looked at then.
  std::vector<FormPart> files;
};

class HTTPRETRY_API Form {
 public:
  Form();  // with a boundary of its own, that nobody can foresee

  Form& add(std::string name, std::string value);
  // A file of this machine, under its own name without the folders.
  Form& add_file(std::string name, std::string path);
  // Throws std::invalid_argument for a NUL byte in a name, and for a content type that could not
  // stand in a header.
  Form& add(FormPart part);

  [[nodiscard]] Body body() const;
  [[nodiscard]] std::string content_type() const;  // with the boundary

 private:
  std::string boundary_;
  std::vector<FormPart> parts_;
};

}  // namespace httpretry
