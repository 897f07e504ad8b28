// Body: what a request sends, and whether it can be read a second time.
//
// A cheap handle to shared immutable data. Every attempt opens its own reader, so a retry starts at
// the first byte. A body that can be read only once is never sent again as an empty one: the call
// ends with `not_replayable` instead.
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

class PausingReader;

// Reads a body from its beginning to its end, once. Used by one thread at a time.
class HTTPRETRY_API BodyReader {
 public:
  virtual ~BodyReader();
  // Fills `into`, or part of it; 0 is the end. An error ends the transfer. It must not block, which
  // would hold up all calls of the loop: what has to wait is a PausingReader or an awaited_body
  // (awaited_body.hpp).
  virtual Result<std::size_t> read(std::span<char> into) = 0;
  // The number of bytes still to come, if known; otherwise the body is sent chunked.
  [[nodiscard]] virtual std::optional<std::uint64_t> size() const;

  // Returned by `read` if there is nothing to give yet, and the reader that is then awaited. Only
  // for a PausingReader, and for a reader that contains one.
  static constexpr std::size_t kPause = ~std::size_t{0};
  virtual PausingReader* pausing();
};

class HTTPRETRY_API Body {
 public:
  // Fills a buffer and returns how many bytes it wrote; 0 is the end. It must not block.
  using Generator = std::function<std::size_t(std::span<char>)>;
  using Opener = std::function<Result<std::unique_ptr<BodyReader>>()>;

  // No body. A POST still sends "Content-Length: 0".
  Body() = default;
  Body(std::string bytes);  // NOLINT(google-explicit-constructor)
  Body(const char* bytes);  // NOLINT(google-explicit-constructor)
  // A regular file from byte `offset` on, opened again for each attempt. It must not change during
  // the call. A pipe is an error: read it with `once`.
  static Body file(std::string path, std::uint64_t offset = 0);
  // Anything that can be opened again. `open` is called on the thread that drives the call.
  static Body reopened(Opener open);
  // A generated body: `start` returns a generator that begins at the first byte.
  static Body generated(std::function<Generator()> start,
                        std::optional<std::uint64_t> size = std::nullopt);
  // A body that can be read only once. It can still be sent again if none of it was read (there was
  // no connection).
  static Body once(Generator generate, std::optional<std::uint64_t> size = std::nullopt);
  static Body once(std::unique_ptr<BodyReader> reader);

  [[nodiscard]] bool present() const { return source_ != nullptr; }
  // Whether both are handles to the same data.
  [[nodiscard]] bool is_same_as(const Body& other) const { return source_ == other.source_; }
  // Whether `open` would return a reader of the whole body now.
  [[nodiscard]] bool replayable() const;
  // Whether two readers may be open at once: there is no body, or it is in memory or in a file.
  [[nodiscard]] bool shareable() const;
  // The bytes, where they are in memory; nullptr otherwise.
  [[nodiscard]] const std::string* bytes() const;
  // A reader at the first byte. Errc::InvalidRequest, with the cause, if that is not possible.
  [[nodiscard]] Result<std::unique_ptr<BodyReader>> open() const;

 private:
  friend class Form;
  Body(Opener open, std::function<bool()> replayable);
  struct Source;
  std::shared_ptr<Source> source_;
};

// Form: multipart/form-data (RFC 7578), as browsers send forms.
//
//   Form form;
//   form.add("title", "A cat").add_file("picture", "cat.jpg");
//   client.send(Request::post(url, Body()).set_form(form));
//
// Files are read while they are sent, and again for each attempt. A form can be sent again if all
// of its parts can.

struct HTTPRETRY_API FormPart {
  FormPart() = default;
  FormPart(std::string field, Body content);

  std::string name;
  Body body;
  std::string file_name;     // empty: a field, not a file
  std::string content_type;  // empty: none for a field; for a file it follows from the extension
  Headers headers;           // additional ones; a Content-Type here replaces `content_type`
  // Several files in one field, as multipart/mixed; `body` and `file_name` are then ignored.
  std::vector<FormPart> files;
};

class HTTPRETRY_API Form {
 public:
  Form();  // with a random boundary

  Form& add(std::string name, std::string value);
  // A local file, under its name without the directories.
  Form& add_file(std::string name, std::string path);
  // Throws std::invalid_argument if a name contains a NUL byte, or the content type is not a valid
  // header value.
  Form& add(FormPart part);

  [[nodiscard]] Body body() const;
  [[nodiscard]] std::string content_type() const;  // with the boundary

 private:
  std::string boundary_;
  std::vector<FormPart> parts_;
};

}  // namespace httpretry
