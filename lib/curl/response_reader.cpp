#include "response_reader.hpp"

#include <algorithm>
#include <charconv>

namespace httpretry {
namespace {

// Memory is reserved for the announced length, but a server may announce more than any machine has.
constexpr std::uint64_t kMaxReserved = 1U << 30U;

// Room for the headers of a usual response, so that they need no further allocation.
constexpr std::size_t kUsualHeaderLines = 12;
constexpr std::size_t kUsualHeaderBytes = 384;

// How many times the body is gzipped; -1: it has another coding.
int times_gzipped(const Headers& headers) {
  int times = 0;
  for (auto list : headers.get_all("Content-Encoding")) {
    while (!list.empty()) {
      const auto end = std::min(list.find(','), list.size());
      auto coding = list.substr(0, end);
      list.remove_prefix(std::min(end + 1, list.size()));
      coding.remove_prefix(std::min(coding.find_first_not_of(" \t"), coding.size()));
      coding = coding.substr(0, coding.find_last_not_of(" \t") + 1);
      if (equal_ignoring_case(coding, "gzip") || equal_ignoring_case(coding, "x-gzip")) {
        ++times;
      } else if (!coding.empty() && !equal_ignoring_case(coding, "identity")) {
        return -1;
      }
    }
  }
  return times;
}

}  // namespace

void ResponseReader::begin_block(std::string_view line) {
  headers_.clear();
  headers_.reserve(kUsualHeaderLines, kUsualHeaderBytes);
  in_headers_ = true;
  status_ = 0;
  reason_.clear();
  line = line.substr(0, line.find_last_not_of("\r\n ") + 1);
  const auto space = line.find(' ');
  if (space == std::string_view::npos) return;
  const auto version = line.substr(5, space - 5);
  version_ = version == "2" ? "2" : version == "1.0" ? "1.0" : "1.1";
  const char* digits = line.data() + line.find_first_not_of(' ', space);
  const char* end = line.data() + line.size();
  const auto [rest, problem] = std::from_chars(digits, end, status_);
  if (rest == end) return;
  const std::string_view reason(rest + 1, end);
  if (valid_header_value(reason)) reason_ = reason;
}

void ResponseReader::keep_proxy_block() {
  proxy_status_ = status_;
  proxy_headers_ = std::move(headers_);
  headers_.clear();
}

Response ResponseReader::head() const {
  Response head(status_);
  head.reason = reason_;
  head.http_version = version_;
  head.headers = headers_;
  head.url = request_.url();
  return head;
}

bool ResponseReader::begin_response() {
  if (delivery_ == nullptr) return true;
  auto begun = delivery_->begin(request_, head());
  if (!begun) return sink_failed(std::move(begun).error());
  to_sink_ = *begun;
  return true;
}

bool ResponseReader::begin_body(std::int64_t announced) {
  body_begun_ = true;
  if (wanted_.compressed) {
    const auto gzips = times_gzipped(headers_);
    if (gzips != 0 && gzips != 1) return abort_.set(Abort::UnknownCoding);
    if (gzips == 1) {
      gunzip_ = std::make_unique<Gunzip>();
      return true;
    }
  }
  if (to_sink_ || (delivery_ != nullptr && delivery_->held()) || announced <= 0) return true;
  const auto length = static_cast<std::uint64_t>(announced);
  if (length > max_body_) return abort_.set_limit(Abort::BodyTooLarge, max_body_);
  body_.reserve(std::min(length, kMaxReserved));
  return true;
}

bool ResponseReader::body_bytes(std::string_view bytes) {
  if (!gunzip_) return decoded_bytes(bytes);
  const auto status =
      gunzip_->feed(bytes, [this](std::string_view decoded) { return decoded_bytes(decoded); });
  if (status == Gunzip::Status::Corrupt) return abort_.set(Abort::CorruptGzip);
  return status == Gunzip::Status::Ok;
}

bool ResponseReader::decoded_bytes(std::string_view bytes) {
  if (to_sink_) return write_to_sink(bytes);
  if (bytes.size() > max_body_ - body_.size()) {
    return abort_.set_limit(Abort::BodyTooLarge, max_body_);
  }
  body_.append(bytes);
  return delivery_ == nullptr || !delivery_->can_judge(body_.size()) || release_to_sink();
}

bool ResponseReader::write_to_sink(std::string_view bytes) {
  auto wish = delivery_->write(bytes);
  if (!wish) return sink_failed(std::move(wish).error());
  if (*wish == BodyWriter::Wish::Stop) return sink_failed(reader_stopped());
  paused_ = paused_ || *wish == BodyWriter::Wish::Pause;
  return true;
}

// What was held back is for the sink after all.
bool ResponseReader::release_to_sink() {
  Response begun = head();
  begun.body = std::move(body_);
  auto released = delivery_->release(request_, begun);
  if (!released) return sink_failed(std::move(released).error());
  to_sink_ = *released;
  body_ = to_sink_ ? std::string() : std::move(begun.body);
  return !to_sink_ || write_to_sink(begun.body);
}

bool ResponseReader::sink_failed(Error error) {
  return abort_.set_error(Abort::SinkFailed, std::move(error));
}

void ResponseReader::take(Response& response) {
  response.status = status_;
  response.reason = std::move(reason_);
  response.http_version = version_;
  if (gunzip_) {  // the body is no longer what these describe
    headers_.remove("Content-Encoding");
    headers_.remove("Content-Length");
  }
  response.headers = std::move(headers_);
  response.body = std::move(body_);
  response.url = request_.url();
}

}  // namespace httpretry
