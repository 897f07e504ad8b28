// An upload in parts that resumes after an interruption, with the protocol of Google Cloud Storage.
//
//   example_resumable_upload [FILE]     (default: the program itself)
#include <httpretry/client/resumable_upload.hpp>
#include <httpretry/httpretry.hpp>
#include <httpretry/testing/testing.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <string>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

// The server. It keeps half of the second part, and responds that it is busy.
class Storage {
 public:
  explicit Storage(std::uint64_t size) : size_(size) {}

  // A POST begins the upload. A PUT stores a part or, without a body, asks how much is stored.
  Step respond(const SeenRequest& request) {
    const std::lock_guard lock(mutex_);
    if (request.method == "POST") return {200, {{"Location", "/session"}}};
    const bool is_question = request.body.empty();
    const bool busy = !is_question && ++parts_ == 2;
    stored_ += busy ? request.body.size() / 2 : request.body.size();
    std::printf("%-35s %s\n", std::string(request.headers["Content-Range"]).c_str(),
                busy          ? "503, and half of it is stored"
                : is_question ? "what do you have?"
                              : "stored");
    if (busy) return {503};
    if (stored_ == size_) return {201, "complete"};
    return {308, {{"Range", "bytes=0-" + std::to_string(stored_ - 1)}}};
  }
  [[nodiscard]] bool complete() const { return stored_ == size_; }

 private:
  std::mutex mutex_;
  std::uint64_t size_;
  std::uint64_t stored_ = 0;  // bytes
  int parts_ = 0;
};

void show(const Progress& now) {
  if (now.sent == now.to_send)
    std::printf("%llu bytes sent\n", static_cast<unsigned long long>(now.sent));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : "/proc/self/exe";
  const auto size = std::filesystem::file_size(path);
  Storage storage(size);
  Step step;
  step.respond = [&](const SeenRequest& request) { return storage.respond(request); };
  FaultServer server(Scenario{step});
  const auto url = server.url("/upload");

  Client client;
  // The request that starts the upload. The content follows in parts.
  auto start = Request::post(url, R"({"name": "program"})");
  start.edit_options().on_progress = show;
  ResumableUploadOptions options;
  // At least four parts, because the server interrupts the second one. 0 would mean a single part.
  options.part_size = std::max<std::uint64_t>(1, std::min<std::uint64_t>(size / 4, 512 << 10));
  const Outcome outcome = upload_resumable(client, start, UploadContent::file(path), options);
  if (!outcome) {
    std::fprintf(stderr, "%s\n", outcome.error().message.c_str());
    return 1;
  }
  std::printf("%d %s\n", outcome->status, outcome->body.c_str());
  return outcome->status == 201 && storage.complete() ? 0 : 1;
}
