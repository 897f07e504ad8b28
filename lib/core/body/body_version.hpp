// BodyVersion: the headers that distinguish the body of a response from other bodies of the same
// URL. Bytes that are received later are appended only if they belong to the same body.
#pragma once

#include <httpretry/body/sink.hpp>

namespace httpretry {

struct BodyVersion {
  BodyVersion() = default;
  // For a response with a whole body or with the rest of one.
  explicit BodyVersion(const Headers& head);
  // For the beginning of a body that an earlier call has stored.
  explicit BodyVersion(const BodyStart& start);

  // Returns how a later response differs, such as "another ETag", or "" if it does not.
  [[nodiscard]] std::string difference(const Headers& later) const;
  // Returns whether the validator is an ETag and `later` has the same one.
  [[nodiscard]] bool proven_by(const Headers& later) const;

  // The value for If-Range (RFC 9110 §13.1.5): a strong ETag, or a Last-Modified that is a strong
  // validator. Empty if the rest cannot be requested.
  std::string validator;
  // Each is empty if it is unknown or if the response had several.
  std::string etag;
  std::string modified;
  std::optional<std::uint64_t> total;  // the size of the whole body
};

// Returns whether the rest of a response to this request may be requested and appended.
bool can_be_continued(const Request& request);

// Parses "bytes 100-199/200", "bytes 100-199/*" or "bytes */200".
struct ContentRange {
  explicit ContentRange(const Headers& headers);
  [[nodiscard]] std::string text() const;  // for messages

  std::optional<std::uint64_t> first;
  std::optional<std::uint64_t> end;  // the byte after the last one
  std::optional<std::uint64_t> total;
};

}  // namespace httpretry
