#include "queue/enqueue.hpp"

#include "batch/display.hpp"
#include "cli/exit_status.hpp"
#include "cli/message.hpp"

namespace httpretry::cli {

queue::QueueOptions queue_options(const BatchCommand& command) {
  if (command.queue.empty()) throw UsageError("--queue URL is missing: it names the queue");
  const auto address = queue::parse_queue(command.queue);
  if (!address) throw UsageError("option --queue: " + address.error().message);
  queue::QueueOptions options;
  options.address = *address;
  options.force = command.force;
  options.tell = [](const std::string& text) { print_message("httpretry: " + text); };
  return options;
}

int enqueue_input(const BatchCommand& command) {
  if (!command.enqueue) throw UsageError("--queue needs --enqueue; `httpretry work` sends a queue");
  const auto options = queue_options(command);
  const auto report = queue::enqueue(options, command.batch);
  if (!report.good) return kUsage;
  show_status("");
  if (command.progress == ProgressStyle::None) return kOk;
  auto line = "httpretry: " + grouped(report.added) + " jobs added";
  if (report.present > 0) line += ", " + grouped(report.present) + " were there already";
  print_message(line);
  return kOk;
}

}  // namespace httpretry::cli
