// A download that breaks off half way and goes on where it broke off. The file takes its place when
// it is whole; until then, and if it never is, what stood there stands.
//
//   example_resume_download [URL FILE]
#include <httpretry/client/client.hpp>
#include <httpretry/flow/sink.hpp>
#include <httpretry/middleware/builtin.hpp>
#include <httpretry/middleware/retry.hpp>
#include <httpretry/testing/testing.hpp>

#include <cstdio>
#include <filesystem>
#include <string>

using namespace httpretry;

namespace {

constexpr std::size_t kHalf = std::size_t{512} * 1024;

// A MiB, of which the first answer brings one half, and the second the other.
Scenario breaking_off() {
  Step broken(200, {{"ETag", "\"v1\""}}, std::string(kHalf, 'a') + std::string(kHalf, 'b'));
  broken.fault = Fault::Truncate;
  const Step rest(206, {{"ETag", "\"v1\""}, {"Content-Range", "bytes 524288-1048575/1048576"}},
                  std::string(kHalf, 'b'));
  return Scenario({broken, rest});
}

}  // namespace

int main(int argc, char** argv) {
  FaultServer server(breaking_off());
  const bool given = argc > 2;
  const std::string path = given ? argv[2] : "example_download";

  auto request = Request::get(given ? argv[1] : server.url("/big.iso"));
  FileOptions file;
  file.keep_partial = true;  // where all attempts fail, the next run goes on
  request.edit_options().sink = save_to(path, file);
  Client client({redirect(), retry()});
  const auto outcome = client.send(request);
  if (!outcome || !outcome->ok()) {
    std::fprintf(stderr, "%s\n", outcome ? "not found" : outcome.error().message.c_str());
    return 1;
  }
  const auto size = std::filesystem::file_size(path);
  std::printf("%s: %zu bytes by %zu attempts\n", path.c_str(), static_cast<std::size_t>(size),
              outcome->history.attempts.size());
  if (given) return 0;

  for (const auto& seen : server.seen()) {
    std::printf("GET %s  Range: %s  If-Range: %s\n", seen.path.c_str(),
                std::string(seen.headers.get("Range").value_or("-")).c_str(),
                std::string(seen.headers.get("If-Range").value_or("-")).c_str());
  }
  std::filesystem::remove(path);
  return size == 2 * kHalf && server.requests() == 2 ? 0 : 1;
}
