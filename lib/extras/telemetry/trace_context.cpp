#include "call_trace.hpp"

#include "lib/core/base/text.hpp"

#include <httpretry/chain/call.hpp>
#include <httpretry/http/headers.hpp>
#include <httpretry/telemetry/trace_context.hpp>

#include <array>
#include <vector>

namespace httpretry {
namespace {

using telemetry::kFlagsOffset;
using telemetry::kSpanOffset;
using telemetry::kTraceOffset;
using telemetry::kTraceparentLength;

constexpr std::size_t kMaxMembers = 32;      // of a tracestate
constexpr std::size_t kMaxBaggage = 8192;    // bytes
constexpr std::size_t kLongestMember = 256;  // of a key or value in a tracestate
constexpr std::string_view kDigits = "0123456789abcdef";
// The two hex digits of each byte.
constexpr std::array<std::array<char, 2>, 256> kTwoDigits = [] {
  std::array<std::array<char, 2>, 256> table{};
  for (std::size_t byte = 0; byte < table.size(); ++byte) {
    table[byte] = {kDigits[byte / 16], kDigits[byte % 16]};
  }
  return table;
}();

void append_hex(std::string& text, std::uint64_t number) {
  const auto digits = telemetry::hex_id(number);
  text.append(digits.data(), digits.size());
}

// Parses at most 16 hexadecimal digits. Returns nullopt for any other character, and for uppercase
// digits, which the standard forbids.
std::optional<std::uint64_t> hex_number(std::string_view text) {
  std::uint64_t number = 0;
  for (const char c : text) {
    const auto digit = hex_value(c);
    if (!digit || c != to_lower(c)) return std::nullopt;
    number = number << 4U | *digit;
  }
  return number;
}

// Splits a comma-separated list, and leaves out empty members.
std::vector<std::string_view> members_of(std::string_view list) {
  std::vector<std::string_view> members;
  while (!list.empty()) {
    const auto member = trimmed(take_until(list, ','));
    if (!member.empty()) members.push_back(member);
  }
  return members;
}

bool is_key(std::string_view key) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyz0123456789_-*/@";
  return !key.empty() && key.size() <= kLongestMember &&
         key.find_first_not_of(kAllowed) == std::string_view::npos;
}

bool is_value(std::string_view value) {
  if (value.empty() || value.size() > kLongestMember) return false;
  for (const char c : value) {
    if (c < ' ' || c > '~' || c == '=') return false;
  }
  return true;
}

// Returns the first 32 members of a tracestate. Returns an empty text if a member is not KEY=VALUE:
// the standard then requires dropping the whole list.
std::string checked_state(std::string_view list) {
  std::string state;
  std::size_t count = 0;
  for (const auto member : members_of(list)) {
    const auto equals = member.find('=');
    if (equals == std::string_view::npos || !is_key(member.substr(0, equals)) ||
        !is_value(member.substr(equals + 1))) {
      return {};
    }
    if (++count > kMaxMembers) break;
    state.append(state.empty() ? "" : ",").append(member);
  }
  return state;
}

// Returns the members of a baggage header that are NAME=VALUE without control bytes, as far as they
// fit into the size that the standard allows.
std::string checked_baggage(std::string_view list) {
  std::string baggage;
  for (const auto member : members_of(list)) {
    if (member.find('=') == std::string_view::npos || !valid_header_value(member)) continue;
    const std::string_view comma = baggage.empty() ? "" : ",";
    if (baggage.size() + comma.size() + member.size() > kMaxBaggage) continue;
    baggage.append(comma).append(member);
  }
  return baggage;
}

// Returns the values of all headers with that name, separated by commas.
std::string joined(const Headers& headers, std::string_view name) {
  std::string all;
  for (const auto field : headers) {
    if (!equal_ignoring_case(field.name, name)) continue;
    all.append(all.empty() ? "" : ",").append(field.value);
  }
  return all;
}

}  // namespace

telemetry::HexId telemetry::hex_id(std::uint64_t id) {
  HexId digits;
  for (std::size_t i = digits.size(); i > 0; i -= 2, id >>= 8U) {
    const auto& two = kTwoDigits[id & 0xFFU];
    digits[i - 2] = two[0];
    digits[i - 1] = two[1];
  }
  return digits;
}

std::string TraceId::hex() const {
  std::string text;
  text.reserve(32);
  append_hex(text, high);
  append_hex(text, low);
  return text;
}

std::string span_id_hex(std::uint64_t id) {
  const auto digits = telemetry::hex_id(id);
  return {digits.begin(), digits.end()};
}

// Parses the headers of W3C Trace Context. A traceparent is "VERSION-TRACE-SPAN-FLAGS" in lowercase
// hexadecimal digits: 2, 32, 16 and 2 of them. A later version than 00 may have "-" and more after
// that. Returns nullopt if it is malformed. The other two headers never cause that: an invalid
// tracestate is dropped as a whole, and invalid members of the baggage are left out.
std::optional<TraceContext> TraceContext::parse(std::string_view traceparent,
                                                std::string_view tracestate,
                                                std::string_view baggage) {
  constexpr std::size_t kIdDigits = 16;  // of a 64-bit number; a trace id is two of them
  const auto text = trimmed(traceparent);
  if (text.size() < kTraceparentLength || text[kTraceOffset - 1] != '-' ||
      text[kSpanOffset - 1] != '-' || text[kFlagsOffset - 1] != '-') {
    return std::nullopt;
  }
  const auto version = hex_number(text.substr(0, 2));
  constexpr std::uint64_t kForbiddenVersion = 0xFF;
  if (!version || *version == kForbiddenVersion) return std::nullopt;
  const bool has_more = text.size() > kTraceparentLength;
  if (has_more && (*version == 0 || text[kTraceparentLength] != '-')) return std::nullopt;
  const auto high = hex_number(text.substr(kTraceOffset, kIdDigits));
  const auto low = hex_number(text.substr(kTraceOffset + kIdDigits, kIdDigits));
  const auto span = hex_number(text.substr(kSpanOffset, kIdDigits));
  const auto flags = hex_number(text.substr(kFlagsOffset, 2));
  if (!high || !low || !span || !flags) return std::nullopt;
  TraceContext context;
  context.trace = {*high, *low};
  context.span = *span;
  context.flags = static_cast<std::uint8_t>(*flags) & (kSampled | kRandom);
  if (!context.trace.valid() || context.span == 0) return std::nullopt;  // an id must not be 0
  context.state = checked_state(tracestate);
  context.baggage = checked_baggage(baggage);
  return context;
}

std::optional<TraceContext> TraceContext::from(const Headers& headers) {
  const auto parent = headers.get("traceparent");
  if (!parent) return std::nullopt;
  return parse(*parent, joined(headers, "tracestate"), joined(headers, "baggage"));
}

std::string TraceContext::traceparent() const {
  std::string text;
  text.reserve(kTraceparentLength);
  text += "00-";
  append_hex(text, trace.high);
  append_hex(text, trace.low);
  text += '-';
  append_hex(text, span);
  text += "-0";
  text += kDigits[flags & 0xFU];
  return text;
}

std::optional<TraceContext> trace_of(const Call& call) {
  if (const auto* trace = call.get<telemetry::CallTrace>()) return trace->context;
  if (const auto* given = call.get<TraceContext>()) return *given;
  return std::nullopt;
}

}  // namespace httpretry
