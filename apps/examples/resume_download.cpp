// A download that is interrupted halfway and resumed. The file is replaced when the download is
// complete; if it fails, the old file remains.
//
//   example_resume_download [URL FILE]
#include <httpretry/httpretry.hpp>
#include <httpretry/testing/testing.hpp>

#include <cstdio>
#include <filesystem>
#include <string>

using namespace httpretry;

namespace {

constexpr std::size_t kHalf = std::size_t{512} * 1024;

// A file of 1 MiB. The first response delivers the first half, and the second response the rest.
Scenario interrupted() {
  Step broken(200, {{"ETag", "\"v1\""}}, std::string(kHalf, 'a') + std::string(kHalf, 'b'));
  broken.fault = Fault::Truncate;
  const Step rest(206, {{"ETag", "\"v1\""}, {"Content-Range", "bytes 524288-1048575/1048576"}},
                  std::string(kHalf, 'b'));
  return Scenario({broken, rest});
}

}  // namespace

int main(int argc, char** argv) {
  FaultServer server(interrupted());  // used only without arguments
  const bool has_arguments = argc > 2;
  const std::string path = has_arguments ? argv[2] : "example_download";

  auto request = Request::get(has_arguments ? argv[1] : server.url("/big.iso"));
  FileOptions file;
  file.keep_partial = true;  // if all attempts fail, the next run resumes
  request.edit_options().sink = save_to(path, file);
  Client client;
  const auto outcome = client.send(request);  // a retry asks only for the missing part
  if (!outcome) {
    std::fprintf(stderr, "%s\n", outcome.error().message.c_str());
    return 1;
  }
  if (!succeeded(outcome)) {
    std::fprintf(stderr, "the server answered with status %d\n", outcome->status);
    return 1;
  }
  const auto size = std::filesystem::file_size(path);
  std::printf("%s: %zu bytes by %zu attempts\n", path.c_str(), static_cast<std::size_t>(size),
              outcome->history.attempts.size());
  if (has_arguments) return 0;

  for (const auto& seen : server.seen()) {
    std::printf("GET %s  Range: %s  If-Range: %s\n", seen.path.c_str(),
                std::string(seen.headers.get("Range").value_or("-")).c_str(),
                std::string(seen.headers.get("If-Range").value_or("-")).c_str());
  }
  std::filesystem::remove(path);
  return size == 2 * kHalf && server.requests() == 2 ? 0 : 1;
}
