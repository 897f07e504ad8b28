// Three sources of policies: a file that is reloaded when it changes, code, and the configuration
// of a gRPC client.
//
//   example_policies policy.json service_config.json https://api.example.com/
#include <httpretry/httpretry.hpp>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

// Returns a client that reloads its policies when the file changes.
Client client_with_file(const std::string& path) {
  return Client(ClientOptions().with_policies(PolicySource::watch(path).value()));
}

PolicySet policies_in_code() {
  EndpointPattern drive;
  drive.host = "www.googleapis.com";
  drive.path = "/drive/**";
  return PolicySet::builder()
      .policy("careful", PolicyBuilder().max_attempts(6).max_elapsed_time(30s))
      .endpoint(drive, PolicyBuilder().extends("careful").preset("google-drive"), "drive")
      .fallback("careful")
      .build()
      .value();
}

// Converts the configuration of a gRPC client to a policy file. Reports on standard error what
// cannot be converted.
std::string converted(const std::string& service_config, const std::string& name) {
  const auto imported = import_grpc_service_config(service_config, name).value();
  for (const auto& problem : imported.problems) {
    std::fprintf(stderr, "%s\n", to_string(problem).c_str());
  }
  return imported.json;
}

std::string text_of(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: %s POLICY_FILE SERVICE_CONFIG URL\n", *argv);
    return 2;
  }
  try {  // the functions above throw Failure if a file or a policy is invalid
    std::printf("built in code:\n%s\n", policies_in_code().print().c_str());
    std::printf("from %s:\n%s\n", argv[2], converted(text_of(argv[2]), argv[2]).c_str());
    auto client = client_with_file(argv[1]);
    const auto outcome = client.get(argv[3]);
    std::printf("%s\n", outcome ? std::to_string(outcome->status).c_str()
                                : outcome.error().message.c_str());
    return outcome ? 0 : 1;
  } catch (const Failure& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
  }
}
