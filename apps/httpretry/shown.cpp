#include "shown.hpp"

#include "exit_status.hpp"
#include "output.hpp"
#include "words.hpp"
#include "write_out.hpp"

#include <unistd.h>

namespace httpretry::cli {
namespace {

std::string head_of(const Response& response) {
  const auto version = "HTTP/" + response.http_version + " ";
  std::string text = version + std::to_string(response.status) + " \r\n";
  for (const auto field : response.headers) {
    text.append(field.name).append(": ").append(field.value).append("\r\n");
  }
  return text + "\r\n";
}

int status_of(const SendOptions& options, const Outcome& outcome) {
  if (!outcome) return exit_status(outcome.error());
  const bool bad = outcome->status >= 400 && options.on_bad_answer != OnBadAnswer::TakeAsAnswer;
  return bad ? kBadAnswer : kOk;
}

void write_answer(const SendOptions& options, const Request& request, const Response& response,
                  const std::string& target, int give_up) {
  if (response.status >= 400 && options.on_bad_answer == OnBadAnswer::FailWithout) return;
  const bool head = request.method() == "HEAD" && options.head;
  if (!options.include && !head) return write_to(target, response.body, give_up);
  write_to(target, head_of(response) + response.body, give_up);
}

// A failure, or a limit of the policy that ended the call.
void explain(const SendOptions& options, const Outcome& outcome, int status) {
  if (!speaks(options)) return;
  const auto reason = history_of(outcome).stop_reason;
  const bool plain = reason == Reason::Success || reason == Reason::NotRetryable;
  if (status == kOk && plain) return;
  if (!outcome) {
    say("httpretry: (" + std::to_string(status) + ") " + printable(outcome.error().message));
  }
  say(closing_line(outcome));
}

}  // namespace

int show(const SendOptions& options, const Request& request, const Outcome& outcome,
         const std::string& target, int give_up) {
  auto status = status_of(options, outcome);
  try {
    if (outcome) write_answer(options, request, *outcome, target, give_up);
  } catch (const WriteError& error) {
    if (speaks(options)) say(std::string("httpretry: ") + error.what());
    status = kWriteError;
  }
  if (!options.write_out.empty()) {
    std::string to_stderr;
    const Transferred about{outcome, request.method(), request.url(), status};
    const auto text = write_out(options.write_out, about, to_stderr);
    write_all(STDERR_FILENO, to_stderr, give_up, "standard error");
    write_all(STDOUT_FILENO, text, give_up, "standard output");
  }
  explain(options, outcome, status);
  return status;
}

}  // namespace httpretry::cli
