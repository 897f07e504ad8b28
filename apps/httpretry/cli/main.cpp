// httpretry: sends HTTP requests as curl does, and retries them by a policy.
#include "cli/commands.hpp"
#include "cli/exit_status.hpp"
#include "cli/input.hpp"
#include "cli/output.hpp"
#include "policy/policies.hpp"

#include <fcntl.h>
#include <csignal>
#include <cstdio>
#include <exception>

namespace httpretry::cli {
namespace {

int complain(const std::exception& error, int status) {
  std::fprintf(stderr, "httpretry: %s\n", error.what());
  return status;
}

// A standard stream that is closed would be the number of the next descriptor, and be written to.
// It is there, and fails as a closed one does.
void hold_standard_streams() {
  for (const int stream : {0, 1, 2}) {
    if (::fcntl(stream, F_GETFD) >= 0) continue;
    static_cast<void>(::open("/dev/null", stream == 0 ? O_WRONLY : O_RDONLY));
  }
}

}  // namespace
}  // namespace httpretry::cli

int main(int argc, char** argv) {
  using namespace httpretry::cli;
  hold_standard_streams();
  // A reader that went away is an error of write(), which we report.
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return run(Args(argv + (argc > 0 ? 1 : 0), argv + argc));
  } catch (const UsageError& error) {
    complain(error, kUsage);
    std::fputs("httpretry: --help lists the options\n", stderr);
    return kUsage;
  } catch (const BadPolicyFile& error) {
    std::fputs(error.what(), stderr);
    return kBadPolicyFile;
  } catch (const ReadError& error) {
    return complain(error, kReadError);
  } catch (const WriteError& error) {
    return complain(error, kWriteError);
  } catch (const std::exception& error) {
    return complain(error, kInternalError);
  }
}
