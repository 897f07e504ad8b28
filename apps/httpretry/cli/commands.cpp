#include "cli/commands.hpp"

#include <array>

namespace httpretry::cli {
namespace {

constexpr auto kSending = std::to_array<Example>({
    {"httpretry https://api.example.com/v1/items", "a GET with up to four retries"},
    {"httpretry --trace --retry 6 -d @order.json --idempotency-key URL",
     "a POST that may be retried, with each attempt shown"},
    {"httpretry --policy policy.json --report - -o items.json URL",
     "use a policy file, and print a report"},
    {"httpretry --until json:/state=DONE URL", "poll until the response says so"},
    {"httpretry -Z --parallel-max 8 -O URL1 -O URL2", "download two files at the same time"},
});
constexpr auto kPlanning = std::to_array<Example>({
    {"httpretry plan --preset google-drive", "the shortest, mean and longest waits"},
    {"httpretry plan --outcomes 503,timeout,429:retry-after=7,200 POST URL",
     "the decisions for these outcomes"},
    {"httpretry plan --preset gcs --format svg > gcs.svg", "a drawing, for a document"},
});
constexpr auto kChecking = std::to_array<Example>({{"httpretry policy check policy.json", ""}});
constexpr auto kExplaining = std::to_array<Example>({
    {"httpretry policy explain policy.json GET https://api.example.com/v1/items", ""},
});
constexpr auto kPresets = std::to_array<Example>({{"httpretry policy presets google-drive", ""}});
constexpr auto kServing = std::to_array<Example>({
    {"httpretry serve --outcomes 503,reset,200", "two requests fail, the third succeeds"},
});

#ifdef HTTPRETRY_WITH_SIMULATE
constexpr auto kSimulating = std::to_array<Example>({
    {"httpretry simulate --model queue --trigger at=20s,for=10s,capacity=0.1",
     "an outage of ten seconds"},
    {"httpretry simulate --preset standard --preset curl --model fail:probability=1",
     "how much two policies send to a server that always fails"},
    {"httpretry simulate --policy a.json --model m.json --format html > page.html",
     "a page with curves"},
});
#endif

#ifdef HTTPRETRY_WITH_BATCH
constexpr auto kBatches = std::to_array<Example>({
    {"httpretry batch urls.txt", "request each URL of a list, and resume after a crash"},
    {"httpretry batch --rate 100/s --dead failed.jsonl events.jsonl",
     "send requests as JSON lines, at most 100 a second"},
    {"httpretry batch --status events.jsonl.httpretry.db", "show its progress"},
});
#endif

#ifdef HTTPRETRY_WITH_QUEUE
constexpr auto kWorking = std::to_array<Example>({
    {"httpretry batch --queue redis://host/0?job=a --enqueue a.jsonl", "add requests to a queue"},
    {"httpretry work --queue redis://host/0?job=a", "send them, on any number of machines"},
    {"httpretry work --queue redis://host/0?job=a --drain", "the same, until no job is left"},
    {"httpretry work --queue redis://host/0?job=a --results done.jsonl", "write their results"},
});
#endif

constexpr std::span<const Example> kNoExamples;

// An entry has the name of a command, its operands, its summary, its description, its examples, the
// function that returns its flags, and the function that runs it.
constexpr auto kCommands = std::to_array<Command>({
    {"", "URL...", "send requests",
     "Sends requests as curl does, and retries them according to a policy. The response goes to "
     "standard output, messages go to standard error. The responses of failed attempts are not "
     "shown, only the final one.",
     kSending, send_table, send},
    {"plan", "[METHOD URL]", "show what would happen, without a network",
     "Shows what would happen to a request. It runs the same code that sends, in virtual time and "
     "without a network.\n"
     "Without a scenario, every attempt fails in a way that the policy retries, and the table "
     "shows the range of each wait. With a scenario, it shows the exact decisions (with random "
     "draws of 0.5, unless --random or --seed is given). METHOD defaults to GET.\n"
     "A timeout takes the policy's attempt_timeout or response_timeout, or 30 s if it has neither; "
     "a real one would last until max_elapsed_time. Here, reset and close happen on new "
     "connections. On a used one, which may be stale, a real request is sent again at once and not "
     "counted, as after the outcome stale.",
     kPlanning, plan_table, plan},
    {"policy check", "FILE...", "check policy files",
     "Prints a line for each problem in the files, with its position and what was expected. Runs "
     "the tests in the files, in virtual time and without a network, and reports each expectation "
     "that fails. On a terminal, a line confirms that all is well.\n"
     "Warns of policies that are valid but dangerous, such as retries without a budget; \"allow\" "
     "in a policy silences a warning.\n"
     "The exit status is 1 if a file has errors or a test fails, but not for warnings alone.",
     kChecking, help_only, policy_check},
    {"policy explain", "FILE METHOD URL", "show which policy a request gets, and why",
     "Shows the endpoint that matches best, the others that match and why they lose, those that "
     "miss by one condition (near), and the values that differ from the preset, with their "
     "sources. The JSON has all values.",
     kExplaining, policy_explain_table, policy_explain},
    {"policy presets", "[NAME]", "list the built-in policies, or print one",
     "With a name, prints a policy that you can paste into a policy file.\n"
     "\"repeats POSTs\": like the system's own clients, even if the server may have executed them "
     "(repeat: always). The presets for Stripe and Google Cloud Storage send a key with each POST, "
     "so that the server recognizes a repeated one.",
     kPresets, help_only, policy_presets},
    {"policy schema", "", "print the JSON Schema of policy files",
     "Editors can use it to complete and check policy files.", kNoExamples, help_only,
     policy_schema},
    {"serve", "", "run a server that fails on purpose",
     "Each request takes the next step of the scenario. The first line on standard output is the "
     "address. A JSON line for each request follows, written before the response.",
     kServing, serve_table, serve},
#ifdef HTTPRETRY_WITH_SIMULATE
    {"simulate", "[METHOD URL]", "show what a policy does to a server",
     "Many clients with a policy call a model of a server, in virtual time and without a network. "
     "The clients are the real code; only the server and the network are models. Shows for each "
     "policy how many calls succeed, how many requests reach the server, and whether it recovers.\n"
     "Models: fail (each request fails with a probability), capacity (a number of requests per "
     "second; the rest are rejected), queue (workers with a queue), slope (slower with each "
     "request in flight), occ (all clients update one row), trace (recorded reports). A trigger "
     "changes the available share of the capacity, the share of requests that fail, or the load, "
     "for a time.\n"
     "Times such as network or service are constant (10ms), exponential(10ms), normal(10ms,2ms) or "
     "lognormal(10ms,0.5). All keys with their defaults: lib/extras/simulate/README.md.\n"
     "METHOD and URL choose the policy of a policy file, and are needed if it has endpoints; "
     "METHOD defaults to GET.",
     kSimulating, simulate_table, simulate},
#endif
#ifdef HTTPRETRY_WITH_BATCH
    {"batch", "INPUT", "send a list of requests, and resume after a crash",
     "Each line of INPUT is a request: a URL, or a JSON object with url and, if needed, id, "
     "method, headers, json or body or body_base64 or body_file, policy, set, key, output, "
     "not_before, deadline, priority, cost and tag. The whole input is read before anything is "
     "sent; every error is reported with its line and column.\n"
     "A journal has the state of each job: done, dead, waiting until a time, or unknown. Running "
     "the same command again resumes the run; lines may be appended in between. Each job that "
     "ended has one line in the results.\n"
     "A request that is safe to repeat, or has an idempotency key, is sent at least once. Any "
     "other is sent again only if it certainly was not executed; after a crash it is unknown.\n"
     "If a server fails, a job is retried as its policy says, and is then dead: by default after "
     "five attempts within 2 to 5 s, or about 40 s if many jobs fail. To outlast a longer outage, "
     "--set breaker.kind=consecutive --set breaker.failures=4 --max-idle 2m lets the jobs of the "
     "server wait until it responds again. A run in which all jobs must wait longer than "
     "--max-idle ends with status 75; a later run continues.\n"
     "Requests have the User-Agent and Accept headers that httpretry sends. Up to 10 redirects are "
     "followed, as with httpretry -L.\n"
     "The first SIGHUP, SIGINT or SIGTERM lets the requests in flight end, the second stops them; "
     "SIGUSR1 prints the progress. The exit status is 0 if all jobs are done, 22 if a job "
     "is dead, 75 if jobs are left for later.",
     kBatches, batch_table, batch},
#endif
#ifdef HTTPRETRY_WITH_QUEUE
    {"work", "", "send queued requests, alongside other workers",
     "Sends the jobs of a queue on a Redis server, to which httpretry batch --enqueue adds them. "
     "Any number of workers can do so, on any number of machines. A worker that dies or is cut off "
     "loses its jobs to others when their leases end.\n"
     "Each job has one line in the results, or is unknown. A request that is safe to repeat, or "
     "has an idempotency key, is sent at least once. Any other is recorded on the server before it "
     "is sent; if its worker then dies, it is unknown and not sent again.\n"
     "Redirects, headers, and outages of the servers that jobs are sent to: as for batch.\n"
     "While the server of the queue is away, no jobs are taken, the requests in flight end, and "
     "their results are kept until it is back.\n"
     "--unknown writes the unknown jobs, --retry-unknown queues them again. Guarantees, and "
     "settings of the server: lib/extras/queue/README.md.\n"
     "The first SIGHUP, SIGINT or SIGTERM lets the requests in flight end, the second stops them; "
     "SIGUSR1 prints the progress. With --drain, the exit status is 0 if all jobs are done, 22 if "
     "a job "
     "is dead, 75 if jobs are left for later.",
     kWorking, work_table, work},
#endif
    {"completion", "bash|zsh|fish", "print a completion script for a shell",
     "For bash: source <(httpretry completion bash). Packages install these scripts.", kNoExamples,
     help_only, completion},
    {"manual", "", "print the manual page",
     "The source of httpretry(1): httpretry manual | man -l -", kNoExamples, manual_table, manual},
});

}  // namespace

std::string Command::synopsis() const {
  std::string text = "httpretry";
  if (!name.empty()) text += ' ' + std::string(name);
  const auto groups = flags();
  const bool only_help = groups.size() == 1 && groups.front().flags.size() == 1;
  if (!only_help) text += " [options]";
  if (!operands.empty()) text += ' ' + std::string(operands);
  return text;
}

std::span<const Command> commands() { return kCommands; }

}  // namespace httpretry::cli
