// Resumable uploads, by the protocol of Google Cloud Storage and Drive, which others use, too. Not
// part of httpretry.hpp.
//
//   Client client({redirect(), retry(), hedge(), guards(), bearer(token)});
//   const auto start =
//   Request::post("https://storage.googleapis.com/upload/storage/v1/b/pictures/o"
//                                    "?uploadType=resumable&name=cat.jpg", Body());
//   const Outcome stored = upload_resumable(client, start, UploadContent::file("cat.jpg"));
//
// The response to `start` has a Location, the session. The content is sent there by PUT, in parts,
// with "Content-Range: bytes 0-999/2000". After a failure the server is asked how much it has, by
// an empty PUT with "Content-Range: bytes */2000". It responds with the status 308 and "Range:
// bytes=0-499", and the upload goes on after these.
//
// Each part is one call, which is retried by the policy of the client. A retry asks first, and
// sends what is missing then: that is one attempt with two sends. Where the attempts of a part are
// used up, or its time, the upload goes on if the server has more of the content than before. So
// the limits of a policy are those of an upload that stands still. A client without retry() does
// not go on after a failure.
#pragma once

#include <httpretry/client/client.hpp>

#include <cstdint>
#include <functional>
#include <string>

namespace httpretry {

// What is uploaded. It must not change meanwhile.
class HTTPRETRY_API UploadContent {
 public:
  // `from`: the content from byte `offset` on, as a body that tells its size. Called on the thread
  // that drives the call.
  explicit UploadContent(std::function<Body(std::uint64_t offset)> from);
  static UploadContent file(std::string path);
  static UploadContent bytes(std::string content);

  [[nodiscard]] Body from(std::uint64_t offset) const { return from_(offset); }

 private:
  std::function<Body(std::uint64_t)> from_;
};

struct HTTPRETRY_API ResumableUploadOptions {
  ResumableUploadOptions() = default;

  // The most bytes that one request sends. Google wants a multiple of 256 KiB. 0: all in one.
  //
  // Default: 16 MiB
  std::uint64_t part_size = std::uint64_t{16} << 20U;

  // The URL of a session that was begun before: its upload goes on, and `start` is not sent.
  //
  // Default: empty, a new session
  std::string session;

  // Told the URL of a new session, so that another run of the program can go on. Whoever knows it
  // can upload: it is a secret. It must not throw.
  //
  // Default: none
  std::function<void(const std::string& url)> on_session;

  // true: the session may be at another origin than `start`. What the client and `start` send as
  // secrets goes there, too.
  //
  // Default: false, such a session is Errc::Protocol
  bool session_at_other_origin = false;

  // For the requests to the session. They have the Authorization of `start`, too.
  //
  // Default: none
  Headers headers;

  // For each request of the upload; `stop`, `timeout` and `deadline` are for all of them together.
  CallOptions call;
};

// The outcome is
//
//   the content was uploaded                         the final response of the server, a 2xx
//   a request fails, and the upload cannot go on     its response or error. 404 and 410:
//                                                    there is no session any more, begin a new
//                                                    one
//   a response is not what the protocol says, or     Errc::Protocol
//   the server takes nothing five times in a row
//   the content cannot be read, or has no size       Errc::InvalidRequest
//
// with the history of the last request. The options of `start` are for all requests. It is repeated
// like a PUT, unless they say otherwise: a session that nobody uses does no harm. on_progress is
// told of the whole content. There must be no sink.
HTTPRETRY_API Outcome upload_resumable(Client& client, Request start, UploadContent content,
                                       ResumableUploadOptions options = ResumableUploadOptions());
// The same in a coroutine. The client must outlive the task.
HTTPRETRY_API Task<Outcome> co_upload_resumable(
    Client& client, Request start, UploadContent content,
    ResumableUploadOptions options = ResumableUploadOptions());

}  // namespace httpretry
