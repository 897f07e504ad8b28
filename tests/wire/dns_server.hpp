// A name server on the loopback interface, over UDP, that answers as it is told; and a way to have
// the C library's own resolver ask it.
#pragma once

#include <httpretry/chain/transport.hpp>
#include <httpretry/curl/transport_options.hpp>

#include <atomic>
#include <functional>
#include <string>
#include <thread>

namespace httpretry {

class DnsServer {
 public:
  enum class Says { Address, NoSuchName, Failure, Nothing, Garbage, OtherName };
  struct Reply {
    Reply(Says what) : says(what) {}              // NOLINT(google-explicit-constructor)
    Reply(const char* where) : address(where) {}  // NOLINT(google-explicit-constructor)
    Says says = Says::Address;
    std::string address = "127.0.0.1";  // for questions about IPv4; there is none of IPv6
  };
  // Asked for each question, on the server's thread; where it blocks, the server is slow.
  explicit DnsServer(std::function<Reply(const std::string& name)> reply);
  ~DnsServer();
  DnsServer(const DnsServer&) = delete;
  DnsServer& operator=(const DnsServer&) = delete;

  // system_lookup, with this server as the only one.
  [[nodiscard]] Lookup lookup() const;
  [[nodiscard]] int questions() const { return questions_; }

 private:
  void serve();
  std::function<Reply(const std::string&)> reply_;
  int socket_;
  int port_ = 0;
  std::atomic<int> questions_ = 0;
  std::thread thread_;
};

}  // namespace httpretry
