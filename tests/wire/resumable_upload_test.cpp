// Resumable uploads over connections that break.
#include "files.hpp"
#include "raw_server.hpp"
#include "wire.hpp"

#include "tests/client/upload_model.hpp"

#include <httpretry/client/resumable_upload.hpp>

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <mutex>

using namespace httpretry;

namespace {

// Keeps what it has received of each request, and resets the connection after so many bytes of a
// body, in turn.
class BreakingServer {
 public:
  explicit BreakingServer(std::vector<std::size_t> breaks)
      : breaks_(std::move(breaks)), server_([this](int listener) { serve(listener); }) {}
  [[nodiscard]] std::string url() const { return server_.url(); }
  [[nodiscard]] UploadModel model() const {
    const std::lock_guard lock(mutex_);
    return model_;
  }
  [[nodiscard]] std::size_t breaks_left() const {
    const std::lock_guard lock(mutex_);
    return breaks_.size();
  }

 private:
  static std::string field(const std::string& head, const std::string& name) {
    const auto at = head.find("\r\n" + name + ": ");
    if (at == std::string::npos) return "";
    const auto begin = at + name.size() + 4;
    return head.substr(begin, head.find("\r\n", begin) - begin);
  }
  static std::string receive(int fd, std::string have, std::size_t size) {
    std::vector<char> buffer(std::size_t{1} << 16U);
    while (have.size() < size) {
      const auto room = std::min(buffer.size(), size - have.size());
      const auto count = ::recv(fd, buffer.data(), room, 0);
      if (count <= 0) break;
      have.append(buffer.data(), static_cast<std::size_t>(count));
    }
    return have.substr(0, size);
  }
  static void reset(int fd) {
    const linger at_once{1, 0};
    ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  }

  void serve(int listener) {
    for (;;) {
      const int fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) return;
      talk(fd);
      ::close(fd);
    }
  }

  void talk(int fd) {
    const auto text = read_until(fd, "\r\n\r\n");
    const auto end = text.find("\r\n\r\n");
    if (end == std::string::npos) return;
    const auto head = text.substr(0, end + 2);
    const auto size = std::stoull("0" + field(head, "Content-Length"));
    const std::lock_guard lock(mutex_);
    const bool part = head.starts_with("PUT") && size > 0;
    const bool breaks = part && !breaks_.empty() && breaks_.front() <= size;
    const auto body = receive(fd, text.substr(end + 4), breaks ? breaks_.front() : size);
    if (head.starts_with("POST")) {
      return write_all(fd,
                       "HTTP/1.1 200 OK\r\nLocation: /session\r\nContent-Length: 0\r\n"
                       "Connection: close\r\n\r\n");
    }
    const auto response = model_.put(field(head, "Content-Range"), body);
    if (breaks) {
      breaks_.erase(breaks_.begin());
      return reset(fd);
    }
    std::string fields = "Connection: close\r\n";
    if (const auto range = response.headers.get("Range")) {
      fields += "Range: " + std::string(*range) + "\r\n";
    }
    write_all(fd, "HTTP/1.1 " + std::to_string(response.status) + " X\r\n" + fields +
                      "Content-Length: " + std::to_string(response.body.size()) + "\r\n\r\n" +
                      response.body);
  }

  mutable std::mutex mutex_;
  std::vector<std::size_t> breaks_;
  UploadModel model_;
  RawServer server_;  // last: its thread uses the others
};

std::string large_text() {
  std::string text(3'000'001, ' ');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + i * 31 % 23);
  return text;
}

}  // namespace

TEST_CASE("a file is uploaded byte for byte over connections that break in the middle") {
  const TemporaryDirectory directory;
  const auto text = large_text();
  write_file(directory.file("large"), text);
  const auto content = UploadContent::file(directory.file("large"));
  for (const std::size_t part_size : {0U, 1'000'000U}) {
    for (const bool blocking : {true, false}) {
      CAPTURE(part_size);
      CAPTURE(blocking);
      // Within a part, and before its first byte.
      BreakingServer server({700'000, 0, 100'001, 1});
      ResumableUploadOptions options;
      options.part_size = part_size;
      Client client({redirect(), retry(hasty())});
      const auto start = Request::post(server.url(), "{}");
      const auto outcome = blocking
                               ? upload_resumable(client, start, content, options)
                               : sync_wait(co_upload_resumable(client, start, content, options));
      REQUIRE(outcome);
      CHECK(outcome->status == 201);
      CHECK(server.breaks_left() == 0);
      const auto model = server.model();
      CHECK(model.mistakes == 0);
      CHECK(model.complete);
      CHECK((model.content == text));
    }
  }
}

TEST_CASE("a response that is lost after the last byte is asked for, and nothing is sent again") {
  const auto text = large_text();
  BreakingServer server({text.size()});
  Client client({retry(hasty())});
  const auto outcome =
      upload_resumable(client, Request::post(server.url(), "{}"), UploadContent::bytes(text));
  REQUIRE(outcome);
  CHECK(outcome->status == 201);
  const auto model = server.model();
  CHECK(model.mistakes == 0);
  CHECK((model.content == text));
}
