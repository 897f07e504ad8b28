#include "send/shown.hpp"

#include "cli/exit_status.hpp"
#include "cli/input.hpp"
#include "cli/output.hpp"
#include "cli/words.hpp"
#include "send/until.hpp"
#include "send/write_out.hpp"

#include <unistd.h>

namespace httpretry::cli {
namespace {

int status_of(const SendOptions& options, const Outcome& outcome) {
  const bool never = !options.until.empty() && never_held(outcome);
  if (!outcome) return never ? kTimeout : exit_status(outcome.error());
  if (options.on_bad_answer == OnBadAnswer::TakeAsAnswer) return kOk;
  if (never) return kTimeout;
  if (!options.until.empty() && held(*outcome)) return kOk;
  return outcome->status >= 400 ? kBadAnswer : kOk;
}

// Of an answer that is in memory.
void write_answer(const SendOptions& options, const Response& response, const std::string& target,
                  int give_up) {
  const bool with_head = options.include || options.head;
  const bool unwanted = response.status >= 400 && options.on_bad_answer == OnBadAnswer::FailWithout;
  if (unwanted && !with_head) return;
  // What the file has is the beginning of the body, or (304) all of it, and this is neither.
  const bool keeps = response.status == 304 || (options.resume && response.status >= 300);
  if (target != "-" && keeps && !options.include) return;
  const bool with_body = !options.head && !unwanted;
  write_to(target, (with_head ? head_of(response) : "") + (with_body ? response.body : ""),
           give_up);
}

// Of one that waited for its end.
void write_spool(const SendOptions& options, const Response& response, const Spool& spool,
                 const std::string& target, int give_up) {
  const Direct out(target, give_up);
  if (options.include) out.write(head_of(response));
  spool.read([&](std::string_view bytes) { out.write(bytes); });
}

void write_body(const SendOptions& options, const Ended& ended, const std::string& target,
                int give_up) {
  const auto* download = ended.download;
  if (download == nullptr || !download->whole) {
    if (ended.outcome) write_answer(options, *ended.outcome, target, give_up);
  } else if (!download->options().file) {
    write_spool(options, *ended.outcome, download->spool, target, give_up);
  }
}

std::uint64_t received_of(const Ended& ended) {
  if (ended.download != nullptr && ended.download->whole) return ended.download->received;
  return ended.outcome ? ended.outcome->body.size() : 0;
}

// What to do about it, where a flag would help.
std::string advice(const SendOptions& options, const Request& request, const Outcome& outcome) {
  if (!outcome && outcome.error().code == Errc::TooLarge && !options.max_file_size) {
    return "it would have to be held in memory: --max-filesize BYTES allows for more";
  }
  if (!options.until.empty() && never_held(outcome)) {
    return "--until " + printable(options.until) + " did not hold";
  }
  const auto& history = history_of(outcome);
  switch (history.stop_reason) {
    case Reason::UnsafeToRepeat:
      if (options.give_key || options.retry_all_errors) return {};
      return "--idempotency-key, or --retry-all-errors, has it sent again";
    case Reason::BudgetExhausted: return "--set budget=none goes on all the same";
    case Reason::ServerDelayTooLong:
      if (history.detail.find("server_delay.max") == std::string::npos) return {};
      return "--set server_delay.max=TIME allows for longer waits";
    case Reason::NotReplayable:
      if (request.body().replayable()) return {};
      return "the body came from a pipe and is longer than " + std::to_string(kKeptOfPipe >> 20U) +
             " MiB, so it cannot be sent again: put it into a file, and -T that";
    default: return {};
  }
}

// A failure, or a limit of the policy that ended the call. Of several URLs it says which.
void explain(const SendOptions& options, const Request& request, const Outcome& outcome,
             int status) {
  if (!speaks(options)) return;
  const auto reason = history_of(outcome).stop_reason;
  const bool final = reason == Reason::NotRetryable && outcome && outcome->status >= 400;
  const bool plain = reason == Reason::Success || final;
  if (status == kOk && plain) return;
  const auto& url = request.parsed_url();
  const auto which = options.urls.size() > 1 && url ? printable(url->without_secrets()) + ": " : "";
  if (!outcome) {
    say("httpretry: " + which + "(" + std::to_string(status) + ") " +
        printable(outcome.error().message));
  }
  if (const auto help = advice(options, request, outcome); !help.empty()) {
    say("httpretry: " + which + help);
  }
  say(which + describe(outcome));
}

}  // namespace

int show(const SendOptions& options, const Ended& ended, int give_up) {
  say_for_now("");
  const auto& outcome = ended.outcome;
  const auto target = target_for(options, ended.index, ended.request);
  auto status = status_of(options, outcome);
  bool explained = false;
  // What cannot be written keeps nothing else from being written.
  const auto guarded = [&](const auto& write) {
    try {
      write();
    } catch (const WriteError& error) {
      if (speaks(options)) say(std::string("httpretry: ") + error.what());
      status = kWriteError;
      explained = true;
    }
  };
  guarded([&] { write_body(options, ended, target, give_up); });
  if (!options.write_out.empty()) {
    std::string to_stderr;
    const auto file = outcome && target != "-" ? target : std::string();
    const Transferred about{outcome, ended.request,     ended.index,       file,
                            status,  ended.connections, received_of(ended)};
    const auto text = write_out(options.write_out, about, to_stderr);
    guarded([&] { write_all(STDERR_FILENO, to_stderr, give_up, "standard error"); });
    guarded([&] { write_all(STDOUT_FILENO, text, give_up, "standard output"); });
  }
  if (!explained) explain(options, ended.request, outcome, status);
  return status;
}

}  // namespace httpretry::cli
