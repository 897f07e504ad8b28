// Tests code against responses that were recorded with `httpretry --har FILE --har-bodies`, without
// a network and without waits. The archive is usually a file.
#include <httpretry/httpretry.hpp>
#include <httpretry/testing/testing.hpp>

#include <cstdio>

using namespace httpretry;

namespace {

constexpr const char* kArchive = R"({"log": {"entries": [
  {"request": {"method": "GET", "url": "https://api.example.com/v1/items?key=REDACTED"},
   "response": {"status": 503, "content": {"text": "busy"}}},
  {"request": {"method": "GET", "url": "https://api.example.com/v1/items?key=REDACTED"},
   "response": {"status": 200, "content": {"text": "[1, 2]"}}}]}})";

// The code under test.
std::string items(Client& client) {
  const auto outcome = client.get("https://api.example.com/v1/items?key=secret");
  return outcome ? outcome->body : outcome.error().message;
}

}  // namespace

int main() {
  const std::string archive = kArchive;

  ClientOptions options;
  options.transport = ScriptedTransport::from_har(archive);
  options.scheduler = std::make_shared<ManualScheduler>();
  Client client(options);
  const bool good = items(client) == "[1, 2]";  // after a retry

  std::printf("%s\n", good ? "good" : "bad");
  return good ? 0 : 1;
}
