#include <lib/testing/response_writer.hpp>

#include <lib/testing/gzip.hpp>

#include <array>
#include <charconv>
#include <cstddef>
#include <utility>

namespace httpretry::faults {
namespace {

constexpr std::size_t kBlock = 64 * 1024;  // the chunk size of Huge: one write, little memory
constexpr std::string_view kLineEnd = "\r\n";
constexpr const char* kLastChunk = "0\r\n\r\n";
// Neither TLS, after two bytes that look like it, nor HTTP.
constexpr std::string_view kGarbage = "\x16\xFF not \r\n\r\n HTTP at all \x01\x02\r\n\r\n";

// Each as "CODE PHRASE|"; digits occur only in the codes.
constexpr std::string_view kReasons =
    "100 Continue|102 Processing|103 Early Hints|200 OK|201 Created|202 Accepted|"
    "204 No Content|206 Partial Content|301 Moved Permanently|302 Found|303 See Other|"
    "304 Not Modified|307 Temporary Redirect|308 Permanent Redirect|400 Bad Request|"
    "401 Unauthorized|403 Forbidden|404 Not Found|405 Method Not Allowed|"
    "407 Proxy Authentication Required|408 Request Timeout|409 Conflict|"
    "412 Precondition Failed|413 Content Too Large|416 Range Not Satisfiable|"
    "417 Expectation Failed|425 Too Early|429 Too Many Requests|"
    "431 Request Header Fields Too Large|500 Internal Server Error|502 Bad Gateway|"
    "503 Service Unavailable|504 Gateway Timeout|505 HTTP Version Not Supported|";

std::string_view reason(int status) {
  const auto code = kReasons.find(std::to_string(status));
  if (code == std::string_view::npos) return "";
  const auto phrase = kReasons.substr(code + 4);
  return phrase.substr(0, phrase.find('|'));
}

std::string_view first_half(const std::string& text) {
  return std::string_view(text).substr(0, text.size() / 2);
}

std::string chunk(std::string_view bytes) {
  std::array<char, 16> size{};
  char* const end = std::to_chars(size.data(), size.data() + size.size(), bytes.size(), 16).ptr;
  std::string whole(size.data(), end);
  whole.append("\r\n").append(bytes).append("\r\n");
  return whole;
}

// The body of a step before framing; filler for a fault that needs a body.
std::string body_of(const Step& step) {
  constexpr std::size_t kFiller = 1024;  // as Fault promises
  const bool plain =
      step.fault == Fault::None || step.fault == Fault::Stale || step.fault == Fault::HugeHeaders;
  const auto text = step.body.empty() && !plain ? std::string(kFiller, 'x') : step.body;
  if (step.fault == Fault::GzipCutShort) return std::string(first_half(gzip(text)));
  return step.gzip ? gzip(text) : text;
}

}  // namespace

std::string status_line(int status) {
  std::string line = "HTTP/1.1 " + std::to_string(status) + ' ';
  return line.append(reason(status)).append("\r\n");
}

std::string header_lines(const Headers& headers) {
  std::string lines;
  for (const auto field : headers) {
    lines.append(field.name).append(": ").append(field.value).append("\r\n");
  }
  return lines;
}

std::string error_response(int status) {
  return status_line(status) + "Content-Length: 0\r\nConnection: close\r\n\r\n";
}

ResponseWriter::ResponseWriter(Channel& channel, const Step& step, const SeenRequest& request,
                               bool persistent, std::optional<std::chrono::seconds> idle_timeout)
    : channel_(channel),
      step_(step),
      bodiless_(request.method == "HEAD" || step.status == 204 || step.status == 304),
      interims_allowed_(request.http_version != "1.0"),
      persistent_(persistent &&
                  !equal_ignoring_case(step.headers.get("Connection").value_or(""), "close")),
      idle_timeout_(idle_timeout),
      body_(body_of(step)) {}

bool ResponseWriter::send() {
  if (!send_interims() || !channel_.pause(step_.delay)) return false;
  switch (step_.fault) {
    case Fault::None:
    case Fault::Stale:
    case Fault::GzipCutShort: return channel_.write(head() + framed_body()) && persistent_;
    case Fault::Drip: return send_drip() && persistent_;
    case Fault::Huge: return send_huge() && persistent_;
    case Fault::HugeHeaders: return send_huge_headers() && persistent_;
    default: break;
  }
  end_connection();
  return false;
}

bool ResponseWriter::send_interims() {
  std::string blocks;
  for (const auto& interim : step_.interims) {
    blocks += status_line(interim.status) + header_lines(interim.headers) + "\r\n";
  }
  return !interims_allowed_ || channel_.write(blocks);
}

// The faults that end the connection. Write errors do not matter here.
void ResponseWriter::end_connection() {
  [[maybe_unused]] bool written = false;
  switch (step_.fault) {
    case Fault::Reset:
    case Fault::ResetEarly:
    case Fault::TlsReset: channel_.reset(); break;
    case Fault::Hang:
    case Fault::TlsStall: channel_.hold(); break;
    case Fault::ResetDuring:
      written = channel_.write(head().append(first_half(framed_body())));
      channel_.reset();
      break;
    case Fault::Truncate: written = channel_.write(head().append(first_half(framed_body()))); break;
    case Fault::Garbage:
      written = channel_.write(step_.body.empty() ? kGarbage : std::string_view(step_.body));
      break;
    case Fault::BadChunk:
      written = channel_.write(chunked_head() +
                               (bodiless_ ? "" : chunk(first_half(body_)) + "no number\r\n"));
      break;
    case Fault::EndlessInterim: send_endless_interim(); break;
    default: break;  // Close: the caller sends the FIN
  }
}

bool ResponseWriter::send_drip() {
  const auto bytes = framed_body();
  bool alive = channel_.write(head());
  for (std::size_t i = 0; alive && i < bytes.size(); ++i) {
    alive = channel_.pause(step_.interval) && channel_.write({&bytes[i], 1});
  }
  return alive;
}

bool ResponseWriter::send_huge() {
  if (!channel_.write(chunked_head())) return false;
  if (bodiless_) return true;
  const std::string filler(kBlock, 'x');
  const auto block = chunk(filler);
  for (auto left = step_.size; left >= kBlock; left -= kBlock) {
    if (!channel_.write(block)) return false;
  }
  const auto rest = static_cast<std::size_t>(step_.size % kBlock);
  return channel_.write((rest == 0 ? "" : chunk({filler.data(), rest})) + kLastChunk);
}

bool ResponseWriter::send_huge_headers() {
  std::string line = "X-Filler: ";
  line.append(1024 - line.size() - kLineEnd.size(), 'x').append(kLineEnd);

  auto bytes = head();
  bytes.resize(bytes.size() - kLineEnd.size());
  if (!channel_.write(bytes)) return false;
  for (std::uint64_t sent = 0; sent < step_.size; sent += line.size()) {
    if (!channel_.write(line)) return false;
  }
  return channel_.write(std::string(kLineEnd) + framed_body());
}

void ResponseWriter::send_endless_interim() {
  const auto block = status_line(103) + "X-Filler: x\r\n\r\n";
  for (std::uint64_t sent = 0; sent < step_.size; sent += block.size()) {
    if (!channel_.write(block)) return;
  }
}

std::string ResponseWriter::framed_body() const {
  if (bodiless_) return {};
  if (!step_.headers.contains("Transfer-Encoding")) return body_;
  return (body_.empty() ? "" : chunk(body_)) + kLastChunk;
}

std::string ResponseWriter::head() const {
  auto headers = step_.headers;
  const bool unframed = step_.status == 204 || step_.status == 304;
  if (!unframed && !headers.contains("Transfer-Encoding") && !headers.contains("Content-Length")) {
    headers.add("Content-Length", std::to_string(body_.size()));
  }
  return head_with(std::move(headers));
}

std::string ResponseWriter::chunked_head() const {
  auto headers = step_.headers;
  headers.set("Transfer-Encoding", "chunked");
  return head_with(std::move(headers));
}

std::string ResponseWriter::head_with(Headers headers) const {
  const bool compressed = step_.gzip || step_.fault == Fault::GzipCutShort;
  if (compressed && !headers.contains("Content-Encoding")) headers.add("Content-Encoding", "gzip");
  if (!persistent_ && !headers.contains("Connection")) headers.add("Connection", "close");
  if (persistent_ && idle_timeout_ && !headers.contains("Keep-Alive")) {
    headers.add("Keep-Alive", "timeout=" + std::to_string(idle_timeout_->count()));
  }
  return status_line(step_.status) + header_lines(headers) + "\r\n";
}

}  // namespace httpretry::faults
