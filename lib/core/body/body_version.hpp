// BodyVersion: how the headers of a response tell its body from other bodies of the same URL. What
// is received later is put after its first bytes only if it is the same body.
#pragma once

#include <httpretry/body/sink.hpp>

namespace httpretry {

struct BodyVersion {
  BodyVersion() = default;
  // Of a response with a whole body, or with the rest of one.
  explicit BodyVersion(const Headers& head);
  // As an earlier call has kept it.
  explicit BodyVersion(const BodyStart& had);

  // What is different in a later response: "another ETag". Empty if nothing is.
  [[nodiscard]] std::string difference(const Headers& later) const;
  // The validator is an ETag, and `later` has the same.
  [[nodiscard]] bool proven_by(const Headers& later) const;

  // For If-Range (RFC 9110 §13.1.5): a strong ETag, or a Last-Modified that is a strong validator.
  // Empty if the server cannot be asked for the rest.
  std::string validator;
  // Each is empty if it is unknown, or if the response had several.
  std::string etag;
  std::string modified;
  std::optional<std::uint64_t> total;  // the size of the whole body
};

// Whether the rest of a response to this request may be asked for, and put after its first bytes.
bool can_be_continued(const Request& request);

// "bytes 100-199/200", "bytes 100-199/*", "bytes */200".
struct ContentRange {
  explicit ContentRange(const Headers& headers);
  [[nodiscard]] std::string text() const;  // for messages

  std::optional<std::uint64_t> first;
  std::optional<std::uint64_t> end;  // the byte after the last one
  std::optional<std::uint64_t> total;
};

}  // namespace httpretry
