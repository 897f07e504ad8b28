#include "body_version.hpp"

#include "lib/core/base/text.hpp"

#include <httpretry/retry/server_delay.hpp>

namespace httpretry {
namespace {

bool is_strong(std::string_view etag) { return etag.starts_with('"'); }

// Returns whether the headers have at most one field with the name. Checks with `contains` first,
// because most responses lack the header and `get_all` allocates.
bool at_most_once(const Headers& headers, std::string_view name) {
  return !headers.contains(name) || headers.get_all(name).size() == 1;
}

// Returns the value of the field, or "" if the headers do not have it exactly once.
std::string single(const Headers& headers, std::string_view name) {
  return at_most_once(headers, name) ? std::string(headers.get(name).value_or("")) : std::string();
}

// RFC 9110 §8.8.2.2: the date is strong if the response was sent at least a second later.
bool is_strong_date(std::string_view modified, const Headers& head) {
  if (modified.empty()) return false;
  const auto now = WallTime();
  const auto changed = parse_http_date(modified, now);
  const auto sent = parse_http_date(single(head, "Date"), now);
  return changed && sent && *changed < *sent;
}

// Returns the size of the whole body, or nullopt if the headers do not say.
std::optional<std::uint64_t> total_of(const Headers& headers) {
  if (headers.contains("Content-Range")) return ContentRange(headers).total;
  // With these, Content-Length does not count or is not the size of the decoded body.
  if (headers.contains("Transfer-Encoding") || headers.contains("Content-Encoding")) return {};
  return to_number<std::uint64_t>(single(headers, "Content-Length"));
}

}  // namespace

bool can_be_continued(const Request& request) {
  return request.method() == "GET" && !request.headers().contains("Range");
}

// Reads the headers of a response. The validator is the ETag if that is strong, and otherwise the
// date if that is.
BodyVersion::BodyVersion(const Headers& head)
    : etag(single(head, "ETag")), modified(single(head, "Last-Modified")), total(total_of(head)) {
  const bool encoded = head.contains("Content-Encoding");
  if (encoded || head.get("Accept-Ranges") == "none" || !at_most_once(head, "ETag")) return;
  if (is_strong(etag)) {
    validator = etag;
  } else if (is_strong_date(modified, head)) {
    validator = modified;
  }
}

BodyVersion::BodyVersion(const BodyStart& start) : validator(start.validator), total(start.total) {
  (is_strong(validator) ? etag : modified) = validator;
}

// Returns how a later response differs, such as "another ETag", or "" if it does not.
std::string BodyVersion::difference(const Headers& later) const {
  for (const auto* name : {"ETag", "Last-Modified", "Content-Range"}) {
    if (!at_most_once(later, name)) return std::string("more than one ") + name;
  }
  const BodyVersion other(later);
  if (other.total && total && *other.total != *total) {
    return "a total of " + std::to_string(*other.total) + " bytes instead of " +
           std::to_string(*total);
  }
  // If both have an ETag, it decides, and the dates do not count.
  const bool both_etags = !etag.empty() && !other.etag.empty();
  if (both_etags) return etag == other.etag ? "" : "another ETag";
  const bool both_dates = !modified.empty() && !other.modified.empty();
  return both_dates && modified != other.modified ? "another Last-Modified" : "";
}

bool BodyVersion::proven_by(const Headers& later) const {
  return is_strong(validator) && single(later, "ETag") == validator;
}

// Reads "bytes FIRST-LAST/TOTAL". What is missing or contradicts the rest stays empty.
ContentRange::ContentRange(const Headers& headers) {
  auto text = headers.get("Content-Range").value_or("");
  if (!equal_ignoring_case(take_until(text, ' '), "bytes")) return;
  auto range = trimmed(take_until(text, '/'));
  total = to_number<std::uint64_t>(text);  // "*" means unknown
  const auto begin = to_number<std::uint64_t>(take_until(range, '-'));
  const auto last = to_number<std::uint64_t>(range);
  if (!begin || !last || *last < *begin || *last == UINT64_MAX) return;
  if (total && *last >= *total) return;
  first = begin;
  end = *last + 1;
}

std::string ContentRange::text() const {
  if (!first) return "no usable Content-Range";
  return "bytes " + std::to_string(*first) + "-" + std::to_string(*end - 1) +
         (total ? " of " + std::to_string(*total) : "");
}

}  // namespace httpretry
