#include <lib/extras/testing/request_reader.hpp>

#include <lib/core/base/text.hpp>

#include <algorithm>
#include <array>

namespace httpretry::faults {
namespace {

// Far above what clients send: nginx and Apache allow 8 KiB for a header line.
constexpr std::size_t kMaxHead = 64 * 1024;
constexpr std::size_t kMaxLine = 8 * 1024;         // for chunk sizes and trailers
constexpr std::size_t kMaxKeptBody = 1024 * 1024;  // documented for SeenRequest::body
constexpr std::string_view kLineEnd = "\r\n";
constexpr std::string_view kHeadEnd = "\r\n\r\n";
constexpr int kNoError = 0;

// Whether a comma-separated list contains the token, ignoring case.
bool list_contains(std::string_view list, std::string_view token) {
  while (!list.empty()) {
    if (equal_ignoring_case(trimmed(take_until(list, ',')), token)) return true;
  }
  return false;
}

// Parses "METHOD TARGET HTTP/VERSION" into the request. Returns false if the line is malformed.
bool parse_request_line(std::string_view line, SeenRequest& request) {
  constexpr std::string_view kProtocol = "HTTP/";
  const auto method_end = line.find(' ');
  const auto target_end = line.rfind(' ');
  if (method_end == std::string_view::npos || target_end <= method_end + 1) return false;
  const auto method = line.substr(0, method_end);
  const auto target = line.substr(method_end + 1, target_end - method_end - 1);
  const auto protocol = line.substr(target_end + 1);
  if (!valid_header_name(method) || !protocol.starts_with(kProtocol)) return false;
  if (target.find(' ') != std::string_view::npos) return false;
  request.method = method;
  request.target = target;
  request.path = path_of(method, target);
  request.http_version = protocol.substr(kProtocol.size());
  return true;
}

// Each line must end with CRLF. Returns false if a line is malformed.
bool parse_headers(std::string_view lines, Headers& headers) {
  while (!lines.empty()) {
    const auto size = lines.find(kLineEnd) + kLineEnd.size();
    if (!headers.try_add_line(lines.substr(0, size))) return false;
    lines.remove_prefix(size);
  }
  return true;
}

}  // namespace

std::string path_of(std::string_view method, std::string_view target) {
  if (method == "CONNECT") return std::string(target);
  target = target.substr(0, target.find('?'));
  if (const auto scheme = target.find("://"); scheme != std::string_view::npos) {
    const auto slash = target.find('/', scheme + 3);
    target = slash == std::string_view::npos ? "/" : target.substr(slash);
  }
  return std::string(target);
}

void keep_body(SeenRequest& request, std::string_view bytes) {
  request.body.append(bytes.substr(0, kMaxKeptBody - request.body.size()));
  request.body_size += bytes.size();
}

bool RequestReader::fill() {
  std::array<char, 16 * 1024> bytes{};
  const auto count = channel_.read(bytes);
  buffer_.append(bytes.data(), count);
  return count > 0;
}

// Reads the head of a request, that is, its request line and headers, into `request`. Returns
// kNoError; or the status to respond with if the head is too large (431), malformed (400) or of
// another HTTP version (505); or nullopt if the connection ends before the end of the head.
std::optional<int> RequestReader::read_head(SeenRequest& request) {
  std::size_t head_end = 0;
  while ((head_end = buffer_.find(kHeadEnd)) == std::string::npos) {  // no empty line yet
    if (buffer_.size() > kMaxHead) return 431;
    if (!fill()) return std::nullopt;  // appends what the client has sent to `buffer_`
  }
  if (head_end > kMaxHead) return 431;

  const auto head = buffer_.substr(0, head_end + kLineEnd.size());  // each line with its CRLF
  buffer_.erase(0, head_end + kHeadEnd.size());  // what is left belongs to the body
  const auto line_end = head.find(kLineEnd);
  const std::string_view lines = head;
  if (!parse_request_line(lines.substr(0, line_end), request)) return 400;
  if (!parse_headers(lines.substr(line_end + kLineEnd.size()), request.headers)) return 400;
  if (request.http_version != "1.1" && request.http_version != "1.0") return 505;
  if (!read_framing(request)) return 400;  // how long the body is
  return kNoError;
}

// Reads from the headers what read_body() and the connection need to know: the length of the body
// or that it is chunked (RFC 9112 §6.3), whether the connection may stay open, and whether the
// client waits for "100 Continue". Returns false if the framing of the body is invalid or
// ambiguous.
bool RequestReader::read_framing(const SeenRequest& request) {
  const auto& headers = request.headers;
  const auto connection = headers.get("Connection").value_or("");
  persistent_ = request.http_version == "1.1" && !list_contains(connection, "close");
  expects_continue_ = request.http_version == "1.1" &&
                      equal_ignoring_case(headers.get("Expect").value_or(""), "100-continue");

  const auto lengths = headers.get_all("Content-Length");
  const auto codings = headers.get_all("Transfer-Encoding");
  chunked_ = !codings.empty();
  length_ = 0;
  // The headers must give the length only once. Otherwise, a proxy in front of this server could
  // choose a different one.
  if (lengths.size() + codings.size() > 1) return false;
  if (chunked_) return equal_ignoring_case(codings.front(), "chunked");
  if (lengths.empty()) return true;  // no body
  const auto length = to_number<std::uint64_t>(lengths.front());
  length_ = length.value_or(0);
  return length.has_value();
}

std::optional<int> RequestReader::read_body(SeenRequest& request) {
  std::optional<int> error_status;
  if (chunked_) {
    error_status = read_chunks(request);
  } else if (take_body(length_, request)) {
    error_status = kNoError;
  }
  request.body_complete = error_status == kNoError;
  return error_status;
}

bool RequestReader::take_body(std::uint64_t bytes, SeenRequest& request) {
  while (bytes > 0) {
    if (buffer_.empty() && !fill()) return false;
    const auto available = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, buffer_.size()));
    keep_body(request, std::string_view(buffer_).substr(0, available));
    buffer_.erase(0, available);
    bytes -= available;
  }
  return true;
}

std::optional<std::string> RequestReader::take_line() {
  std::size_t end = 0;
  while ((end = buffer_.find(kLineEnd)) == std::string::npos) {
    if (buffer_.size() > kMaxLine || !fill()) return std::nullopt;
  }
  auto line = buffer_.substr(0, end);
  buffer_.erase(0, end + kLineEnd.size());
  return line;
}

// Reads a chunked body into `request`, and then its trailers, which are ignored. Returns kNoError;
// or 400, the status to respond with, if the body is malformed; or nullopt if the connection ends
// first or a line is longer than kMaxLine.
std::optional<int> RequestReader::read_chunks(SeenRequest& request) {
  for (;;) {
    // A chunk is a line with its size, which extensions may follow after a ";", then the bytes, and
    // then an empty line.
    const auto size_line = take_line();
    if (!size_line) return std::nullopt;
    const auto digits = trimmed(std::string_view(*size_line).substr(0, size_line->find(';')));
    const auto size = to_number<std::uint64_t>(digits, /*base=*/16);
    if (!size) return 400;
    if (*size == 0) break;  // the last chunk, without bytes
    if (!take_body(*size, request)) return std::nullopt;
    const auto chunk_end = take_line();
    if (!chunk_end) return std::nullopt;
    if (!chunk_end->empty()) return 400;
  }
  for (;;) {  // until the empty line after the trailers
    const auto trailer = take_line();
    if (!trailer) return std::nullopt;
    if (trailer->empty()) return kNoError;
  }
}

}  // namespace httpretry::faults
