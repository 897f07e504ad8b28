#include "errors.hpp"

#include <sys/resource.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <new>

namespace httpretry {

namespace {

bool is_trust_or_tls_setup(CURLcode code) {
  switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CRL_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
    case CURLE_SSL_INVALIDCERTSTATUS:
    case CURLE_SSL_CLIENTCERT:
    case CURLE_SSL_ENGINE_NOTFOUND:
    case CURLE_SSL_ENGINE_SETFAILED:
    case CURLE_SSL_ENGINE_INITFAILED: return true;
    default: return false;
  }
}

}  // namespace

CurlFailure failure_of(CURLcode code) {
  switch (code) {
    case CURLE_URL_MALFORMAT:
    case CURLE_UPLOAD_FAILED:
    case CURLE_READ_ERROR:
    case CURLE_INTERFACE_FAILED:
    case CURLE_LOGIN_DENIED: return {Errc::InvalidRequest, true};

    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST: return {Errc::Resolve, false};

    case CURLE_COULDNT_CONNECT:
    case CURLE_PROXY:
    case CURLE_QUIC_CONNECT_ERROR: return {Errc::Connect, false};

    // A handshake that breaks off may be the network's fault; is_trust_or_tls_setup() is not.
    case CURLE_SSL_CONNECT_ERROR: return {Errc::Tls, false};

    case CURLE_OPERATION_TIMEDOUT: return {Errc::Timeout, false};
    case CURLE_SEND_ERROR: return {Errc::Send, false};
    // The body went out on a connection that died, and libcurl could not rewind it; retry() can,
    // where the body can be opened again.
    case CURLE_SEND_FAIL_REWIND: return {Errc::Send, false};

    case CURLE_RECV_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_PARTIAL_FILE:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
    case CURLE_HTTP3: return {Errc::Receive, false};

    // HTTP/0.9 or an unknown version in the response: an unknown scheme is an error before this.
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY: return {Errc::Protocol, false};
    case CURLE_BAD_CONTENT_ENCODING:
    case CURLE_RANGE_ERROR: return {Errc::Protocol, true};

    case CURLE_TOO_MANY_REDIRECTS: return {Errc::Protocol, true};
    case CURLE_FILESIZE_EXCEEDED: return {Errc::TooLarge, true};
    case CURLE_ABORTED_BY_CALLBACK:
      return {Errc::Receive, false};  // never seen: an abort has its own code

    default: return {is_trust_or_tls_setup(code) ? Errc::Tls : Errc::Internal, true};
  }
}

std::string system_text(int error) { return std::strerror(error) + hint_at_limit(error); }

std::string hint_at_limit(int error) {
  rlimit files{};
  if (error != EMFILE || ::getrlimit(RLIMIT_NOFILE, &files) != 0) return {};
  return " (this process may have " + std::to_string(files.rlim_cur) +
         " files open, which `ulimit -n` can raise)";
}

std::optional<std::string> exception_text() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  } catch (const std::exception& thrown) {
    return thrown.what();
  } catch (...) {
    return "something that is not a std::exception";
  }
}

}  // namespace httpretry
