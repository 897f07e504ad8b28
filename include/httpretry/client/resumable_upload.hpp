// Resumable uploads with the protocol of Google Cloud Storage and Google Drive, which other
// services use as well. httpretry.hpp does not include this header.
//
//   Client client({redirect(), retry(), hedge(), guards(), bearer(token)});
//   const auto start = Request::post(
//       "https://storage.googleapis.com/upload/storage/v1/b/pictures/o"
//       "?uploadType=resumable&name=cat.jpg", Body());
//   const Outcome stored = upload_resumable(client, start, UploadContent::file("cat.jpg"));
//
// The response to `start` has a Location, which is the URL of the session. The content is sent
// there in parts, by PUT requests with "Content-Range: bytes 0-999/2000". After a failure the
// client sends an empty PUT with "Content-Range: bytes */2000" to find out how much the server has.
// The server responds with status 308 and "Range: bytes=0-499", and the upload continues at the
// next byte.
//
// Each part is one call, which is retried by the client's policy. Each retry first queries the
// server and then sends the missing bytes, so it is one attempt with two sends. When a part has
// used up its attempts or its time, the upload still continues if the server has received more
// content. The limits of a policy therefore apply only while an upload makes no progress. With a
// client without retry(), an upload ends at the first failure.
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/client/client.hpp>

#include <cstdint>
#include <functional>
#include <string>

namespace httpretry {

// The content of an upload. It must not change during the upload.
class HTTPRETRY_API UploadContent {
 public:
  // `from` returns the content from byte `offset` on, as a body with a known size. It is called on
  // the thread that drives the call.
  explicit UploadContent(std::function<Body(std::uint64_t offset)> from);
  // Return the content of a file, which is opened for each request, or bytes in memory.
  static UploadContent file(std::string path);
  static UploadContent bytes(std::string content);

  // Returns the content from byte `offset` on.
  [[nodiscard]] Body from(std::uint64_t offset) const { return from_(offset); }

 private:
  std::function<Body(std::uint64_t)> from_;
};

// The options of `upload_resumable` and `co_upload_resumable`.
struct HTTPRETRY_API ResumableUploadOptions {
  ResumableUploadOptions() = default;

  // The maximum number of bytes in one request. Google requires a multiple of 256 KiB. 0 sends
  // everything in one request.
  //
  // Default: 16 MiB
  std::uint64_t part_size = std::uint64_t{16} << 20U;

  // The URL of an existing session, to continue its upload. `start` is then not sent.
  //
  // Default: empty, a new session
  std::string session;

  // Called with the URL of a new session, so that another run of the program can continue the
  // upload. Keep the URL secret, because anyone who has it can upload. The function must not throw.
  //
  // Default: none
  std::function<void(const std::string& url)> on_session;

  // Allows a session at another origin than `start`. Secrets of the client and of `start` are then
  // sent to that origin.
  //
  // Default: false. Such a session is Errc::Protocol.
  bool session_at_other_origin = false;

  // Headers for the requests to the session, in addition to the Authorization header of `start` and
  // the user name and the password in its URL.
  //
  // Default: none
  Headers headers;

  // Options for each request of the upload. `stop`, `timeout` and `deadline` apply to all of them
  // together.
  CallOptions call;
};

// Uploads the content and blocks until the upload has ended. Returns
//
//   the content was uploaded                         the final response of the server, a 2xx
//   a request fails, and the upload cannot continue  its response or error. After 404 or 410 the
//                                                    session no longer exists; start a new one
//   a response violates the protocol, or the server  Errc::Protocol
//   accepts no bytes five times in a row
//   the content cannot be read, or has no size       Errc::InvalidRequest
//
// with the history of the last request. The options of `start` apply to all requests. `start` is
// repeated like a PUT unless its options forbid that, because an unused session does no harm.
// on_progress reports the progress of the whole content. `start` must not have a sink.
HTTPRETRY_API Outcome upload_resumable(Client& client, Request start, UploadContent content,
                                       ResumableUploadOptions options = ResumableUploadOptions());
// The same as a coroutine. The client must outlive the task.
HTTPRETRY_API Task<Outcome> co_upload_resumable(
    Client& client, Request start, UploadContent content,
    ResumableUploadOptions options = ResumableUploadOptions());

}  // namespace httpretry
