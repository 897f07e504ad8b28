#include "abort.hpp"

#include "errors.hpp"

#include <array>
#include <cassert>
#include <cstdio>
#include <new>

namespace httpretry {
namespace {

enum class Append : std::uint8_t { Nothing, Elapsed, Limit };

// libcurl's numbers are those that its own limits would have given.
struct Row {
  Abort why;
  Errc code;
  bool permanent;
  CURLcode curl_code;
  const char* text;  // nullptr: the error of the reason says it
  Append append = Append::Nothing;
};

constexpr std::array kRows{
    Row{Abort::None, Errc::Internal, true, CURLE_OK, ""},
    Row{Abort::NotStarted, Errc::InvalidRequest, true, CURLE_OK, nullptr},
    Row{Abort::Canceled, Errc::Canceled, true, CURLE_ABORTED_BY_CALLBACK, "canceled"},
    Row{Abort::NoTimeLeft, Errc::Timeout, false, CURLE_OPERATION_TIMEDOUT,
        "no time was left to send it"},
    Row{Abort::NoResponse, Errc::Timeout, false, CURLE_OPERATION_TIMEDOUT, "no response after ",
        Append::Elapsed},
    Row{Abort::ResponseIncomplete, Errc::Timeout, false, CURLE_OPERATION_TIMEDOUT,
        "the response was not complete after ", Append::Elapsed},
    Row{Abort::ConnectionDied, Errc::Receive, false, CURLE_RECV_ERROR,
        "the reused connection was closed before a response came"},
    Row{Abort::StreamRefused, Errc::Receive, false, CURLE_RECV_ERROR,
        "the server refused the request unread"},
    Row{Abort::BodyTooLarge, Errc::TooLarge, true, CURLE_FILESIZE_EXCEEDED,
        "the response body is larger than ", Append::Limit},
    Row{Abort::HeadersTooLarge, Errc::TooLarge, true, CURLE_FILESIZE_EXCEEDED,
        "the response headers are larger than ", Append::Limit},
    Row{Abort::CorruptGzip, Errc::Protocol, true, CURLE_BAD_CONTENT_ENCODING,
        "the gzip body of the response is corrupt"},
    Row{Abort::UnknownCoding, Errc::Protocol, true, CURLE_BAD_CONTENT_ENCODING,
        "the response body has another coding than gzip, the only one asked for"},
    Row{Abort::UploadFailed, Errc::InvalidRequest, true, CURLE_READ_ERROR, nullptr},
    Row{Abort::SinkFailed, Errc::Internal, true, CURLE_WRITE_ERROR, nullptr},
    Row{Abort::NoMemory, Errc::Internal, true, CURLE_OUT_OF_MEMORY, "out of memory"},
};

constexpr bool in_order() {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (static_cast<std::size_t>(kRows[i].why) != i) return false;
  }
  return true;
}
static_assert(in_order() && kRows.size() == static_cast<std::size_t>(Abort::NoMemory) + 1);

std::string seconds(Duration time) {
  std::array<char, 32> text{};
  const auto written = std::snprintf(text.data(), text.size(), "%.3g s",
                                     std::chrono::duration<double>(time).count());
  return {text.data(), static_cast<std::size_t>(written)};
}

}  // namespace

bool AbortReason::set_thrown(Abort why, Errc code, const char* who) noexcept {
  try {
    const auto text = exception_text();
    if (!text) return set(Abort::NoMemory);
    Error error(code, std::string(who) + " threw: " + *text);
    error.permanent = true;
    return set_error(why, std::move(error));
  } catch (...) {
    return set(Abort::NoMemory);
  }
}

Error AbortReason::error(Duration elapsed) const {
  const auto& row = kRows[static_cast<std::size_t>(why_)];
  Error error(row.code);
  if (row.text == nullptr) {
    error = *error_;
  } else {
    error.permanent = row.permanent;
    error.message = row.text;
  }
  if (row.append == Append::Elapsed) error.message += seconds(elapsed);
  if (row.append == Append::Limit) error.message += std::to_string(limit_) + " bytes";
  if (error.curl_code == 0) error.curl_code = row.curl_code;
  return error;
}

}  // namespace httpretry
