#include "usage.hpp"

#include "exit_status.hpp"

#include <httpretry/transport.hpp>

#include <cstdio>

namespace httpretry::cli {

int print_help(const std::vector<Flag>& flags) {
  std::fputs(
      "httpretry [options] URL...\n"
      "httpretry plan [options] [METHOD URL]      what would happen, without a network\n"
      "httpretry policy check|explain|presets|schema\n"
      "httpretry serve [options]                  a server that misbehaves on purpose\n"
      "\n"
      "Sends requests as curl does, and retries them by a policy. The answer goes to standard\n"
      "output, what people read to standard error.\n"
      "\n",
      stdout);
  std::fputs(help_lines(flags).c_str(), stdout);
  std::fputs(
      "\n"
      "Exit status: 0 an answer below 400, 22 any other; 2 usage; 3 a bad policy file; 130 and "
      "143\n"
      "by SIGINT and SIGTERM; otherwise curl's number for the failure: 6 resolve, 7 connect,\n"
      "28 timeout, 35 TLS, 47 redirects, 52 empty reply, 56 receive, 60 certificate.\n",
      stdout);
  return kOk;
}

int print_version() {
  std::printf("httpretry %s %s\n", HTTPRETRY_VERSION, transport_version().c_str());
  return kOk;
}

}  // namespace httpretry::cli
