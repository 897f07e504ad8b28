#include "errors.hpp"

#include "lib/core/base/text.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>

namespace httpretry {
namespace {

struct Meaning {
  Errc code;
  bool permanent;
  std::array<CURLcode, 12> codes;  // unused elements are CURLE_OK, which is never a failure
};

constexpr std::array kMeanings{
    Meaning{Errc::InvalidRequest,
            true,
            {CURLE_URL_MALFORMAT, CURLE_UPLOAD_FAILED, CURLE_READ_ERROR, CURLE_INTERFACE_FAILED,
             CURLE_LOGIN_DENIED}},
    Meaning{Errc::Resolve, false, {CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_RESOLVE_HOST}},
    Meaning{Errc::Connect, false, {CURLE_COULDNT_CONNECT, CURLE_PROXY, CURLE_QUIC_CONNECT_ERROR}},
    // A handshake that breaks off may be a network failure; trust and configuration errors are not.
    Meaning{Errc::Tls, false, {CURLE_SSL_CONNECT_ERROR}},
    Meaning{Errc::Tls,
            true,
            {CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER,
             CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CRL_BADFILE, CURLE_SSL_ISSUER_ERROR,
             CURLE_SSL_PINNEDPUBKEYNOTMATCH, CURLE_SSL_INVALIDCERTSTATUS, CURLE_SSL_CLIENTCERT,
             CURLE_SSL_ENGINE_NOTFOUND, CURLE_SSL_ENGINE_SETFAILED, CURLE_SSL_ENGINE_INITFAILED}},
    Meaning{Errc::Timeout, false, {CURLE_OPERATION_TIMEDOUT}},
    // SEND_FAIL_REWIND: the body was sent on a connection that died, and libcurl could not rewind
    // it. retry() can, if the body can be opened again.
    Meaning{Errc::Send, false, {CURLE_SEND_ERROR, CURLE_SEND_FAIL_REWIND}},
    Meaning{Errc::Receive,
            false,
            {CURLE_RECV_ERROR, CURLE_GOT_NOTHING, CURLE_PARTIAL_FILE, CURLE_HTTP2,
             CURLE_HTTP2_STREAM, CURLE_HTTP3}},
    // UNSUPPORTED_PROTOCOL is HTTP/0.9 or an unknown version in the response, because the scheme
    // was checked before. BAD_FUNCTION_ARGUMENT is a line that is not a header, which libcurl
    // passes to one of its own functions.
    Meaning{Errc::Protocol,
            false,
            {CURLE_UNSUPPORTED_PROTOCOL, CURLE_WEIRD_SERVER_REPLY, CURLE_BAD_FUNCTION_ARGUMENT}},
    Meaning{Errc::Protocol,
            true,
            {CURLE_BAD_CONTENT_ENCODING, CURLE_RANGE_ERROR, CURLE_TOO_MANY_REDIRECTS}},
    Meaning{Errc::TooLarge, true, {CURLE_FILESIZE_EXCEEDED, kCurlTooLarge}},
};

// The aborts with a fixed text. Each has the code that libcurl would have reported for a limit of
// its own, which also determines the kind of error.
struct Row {
  Abort why;
  CURLcode curl_code;
  const char* text;
  bool with_elapsed = false;  // the duration of the exchange is appended to the text
};

constexpr std::array kRows{
    Row{Abort::Canceled, CURLE_ABORTED_BY_CALLBACK, "canceled"},
    Row{Abort::NoTimeLeft, CURLE_OPERATION_TIMEDOUT, "no time was left to send it"},
    Row{Abort::NoResponse, CURLE_OPERATION_TIMEDOUT, "no response after ", true},
    Row{Abort::ResponseIncomplete, CURLE_OPERATION_TIMEDOUT, "the response was not complete after ",
        true},
    Row{Abort::ConnectionDied, CURLE_RECV_ERROR,
        "the reused connection was closed before a response arrived"},
    Row{Abort::StreamRefused, CURLE_RECV_ERROR,
        "the server refused the request without processing it"},
    Row{Abort::ExpectRefused, CURLE_RECV_ERROR, "the server does not support Expect: 100-continue"},
    Row{Abort::Unread, CURLE_RECV_ERROR, "the server sent data before the request was sent"},
    Row{Abort::Flooded, CURLE_RECV_ERROR,
        "the connection was closed: the server sent endless HTTP/2 frames that belong to no "
        "response"},
    Row{Abort::RestUnneeded, CURLE_RECV_ERROR, "the rest of the response was not needed"},
    Row{Abort::BodyLeftOut, CURLE_SEND_ERROR,
        "the response is to a request that was sent without its body, to get a challenge"},
    Row{Abort::NoMemory, CURLE_OUT_OF_MEMORY, "out of memory"},
};

static_assert(kRows.size() + 1 == static_cast<std::size_t>(Abort::NoMemory));

}  // namespace

// Returns the error that stands for libcurl's code, from the table above. A code that is not in the
// table gives an Internal error, which is permanent: a retry would not help.
Error failure_of(CURLcode code, std::string message) {
  const auto* const meaning = std::ranges::find_if(kMeanings, [code](const Meaning& some) {
    return std::ranges::find(some.codes, code) != some.codes.end();
  });
  const bool known = meaning != kMeanings.end();
  Error error(known ? meaning->code : Errc::Internal, std::move(message));
  error.permanent = !known || meaning->permanent;
  error.curl_code = code == kCurlTooLarge ? CURLE_FILESIZE_EXCEEDED : code;
  return error;
}

std::string system_text(int error) { return std::strerror(error) + hint_at_limit(error); }

std::string hint_at_limit(int error) {
  rlimit files{};
  if (error != EMFILE || ::getrlimit(RLIMIT_NOFILE, &files) != 0) return {};
  return " (this process may have " + std::to_string(files.rlim_cur) +
         " files open, which `ulimit -n` can raise)";
}

// Sets the error for the exception that is being handled. Returns false, like `set`.
bool AbortReason::set_thrown(CURLcode code, const char* who) noexcept {
  try {
    try {
      throw;  // rethrows the exception that is being handled
    } catch (const std::bad_alloc&) {
      return set(Abort::NoMemory);
    } catch (...) {
      return set_error(code, failure_of(code, std::string(who) +
                                                  " threw: " + text_of(std::current_exception())));
    }
  } catch (...) {  // no memory for the message
    return set(Abort::NoMemory);
  }
}

Error AbortReason::error(Duration elapsed) const {
  if (error_) return *error_;
  const auto& row = *std::ranges::find(kRows, why_, &Row::why);
  auto error = failure_of(row.curl_code, row.text);
  if (why_ == Abort::Canceled) error.code = Errc::Canceled;
  if (why_ == Abort::BodyLeftOut) error.permanent = true;
  if (row.with_elapsed) error.message += duration_text(elapsed);
  return error;
}

}  // namespace httpretry
