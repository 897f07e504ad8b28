// The file beside the target: who may write to it, and what stands in its place.
#include "files.hpp"
#include "sinks.hpp"

#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <utility>
#include <vector>

using namespace httpretry;

namespace {

std::function<void()> before_flock;  // the next one

}  // namespace

// Instead of the C library's, so that a test can do what another process might do at that moment.
extern "C" int flock(int fd, int operation) noexcept {
  if (const auto act = std::exchange(before_flock, nullptr)) act();
  return static_cast<int>(::syscall(SYS_flock, fd, operation));
}

namespace {

FileOptions keep_partial() {
  FileOptions options;
  options.keep_partial = true;
  return options;
}

}  // namespace

TEST_CASE("a file that another process finishes before we lock its part is not written to") {
  const TemporaryDirectory directory;
  const auto path = directory.file("f");
  write_file(path + ".part", "finished by another process");
  before_flock = [&] { std::filesystem::rename(path + ".part", path); };
  Step broken(200, Headers{{"ETag", "\"v1\""}}, "0123456789");
  broken.fault = Fault::Truncate;
  FaultServer server(Scenario{broken});

  CHECK_FALSE(get_into(server, save_to(path, keep_partial())));

  CHECK(read_file(path) == "finished by another process");
  CHECK(read_file(path + ".part") == "01234");
}

TEST_CASE("a part that is a pipe is an error and no wait") {
  const TemporaryDirectory directory;
  REQUIRE(::mkfifo(directory.file("f.part").c_str(), 0600) == 0);
  FaultServer server;
  const auto outcome = get_into(server, save_to(directory.file("f"), keep_partial()));
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().curl_code == 23);
  CHECK(outcome.error().message.find("f.part is not a regular file") != std::string::npos);
  CHECK(server.requests() == 0);
}

TEST_CASE("links that lead in a circle lead to no file") {
  const TemporaryDirectory directory;
  std::filesystem::create_symlink("b", directory.file("a"));
  std::filesystem::create_symlink("a", directory.file("b"));
  FaultServer server(Scenario{{200, "body"}});
  const std::vector<FileOptions> both{FileOptions(), keep_partial()};
  for (const auto& options : both) {
    const auto outcome = get_into(server, save_to(directory.file("a"), options));
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().curl_code == 23);
    CHECK(outcome.error().message.find("Too many levels of symbolic links") != std::string::npos);
  }
  CHECK(server.requests() == 0);
  CHECK(directory.count() == 2);
}
