// The messages about options of `httpretry` and curl that `batch` and `work` do not have.
#include "batch/options.hpp"
#include "send/flags.hpp"

#include <httpretry/http/headers.hpp>

#include <algorithm>

namespace httpretry::cli {
namespace {

// How a message shows the value of an option.
enum class Shown : std::uint8_t {
  Never,     // the message has no value
  AsNumber,  // a number as it is
  PlusOne,   // a number of retries as the number of attempts
  AsTime,    // a number of seconds as a duration of a policy, or "none" for 0
  AsWait,    // the same, but 0 is not valid
  AsWord,    // the name of a method as it is
};

struct Replacement {
  std::string_view options;  // with a space before and after each
  std::string_view use;      // what the user can do instead; "%" stands for the value
  Shown shown = Shown::Never;
  std::string_view example = {};  // the value in the message if the user's is not valid
};

constexpr Replacement kReplacements[] = {
    {" --retry --retries --max-retries --retry-count ", "use --set max_attempts=%", Shown::PlusOne,
     "4 (for 3 retries)"},
    {" --attempts --max-attempts --tries ", "use --set max_attempts=%", Shown::AsNumber, "4"},
    {" -m --max-time --timeout --request-timeout --read-timeout ",
     "use --set max_elapsed_time=% (all attempts of a request together), or --set "
     "attempt_timeout=% (each attempt)",
     Shown::AsTime, "60s"},
    {" --retry-max-time ", "use --set max_elapsed_time=%", Shown::AsTime, "60s"},
    {" --retry-delay --delay --wait --waitretry --backoff ",
     "use --set backoff.kind=constant --set backoff.interval=%", Shown::AsWait, "1s"},
    {" --retry-all-errors ",
     "use --set 'retry_on.statuses=[\"4xx\", \"5xx\"]' and, if executing a request twice does no "
     "harm, --set repeat=always"},
    {" --retry-connrefused ", "leave it out: most policies retry after a refused connection"},
    {" --idempotency-key ",
     "use --set idempotency_key=Idempotency-Key, or the field \"key\" of the line"},
    {" --cost ", "use the field \"cost\" of the line"},
    {" -L --location --max-redirs --follow --follow-redirects ",
     "leave it out: up to 10 redirects of a request are followed"},
    {" -o --output --output-document ", "use --bodies DIR, or the field \"output\" of the line"},
    {" -O --remote-name --remote-name-all --output-dir --create-dirs -J --remote-header-name ",
     "use --bodies DIR, with the field \"output\" of the line for the name of the file"},
    {" -C --continue-at ",
     "leave it out: an interrupted download into a file (--bodies DIR) is resumed"},
    {" -d --data --data-raw --data-binary --data-ascii --data-urlencode --json --body --body-data "
     "--post-data ",
     "use one of the fields \"body\", \"json\", \"body_base64\" and \"body_file\" of the line"},
    {" -F --form --form-string ",
     "use the field \"body\" of the line, with the Content-Type in \"headers\""},
    {" -T --upload-file ", "use the fields \"method\": \"PUT\" and \"body_file\" of the line"},
    {" -G --get --url-query ", "write the query into the field \"url\" of the line"},
    {" -X --request --method ", "use the field \"method\": \"%\" of the line", Shown::AsWord,
     "POST"},
    {" -I --head ", "use the field \"method\": \"HEAD\" of the line"},
    {" -A --user-agent ", "use -H 'User-Agent: NAME'"},
    {" -e --referer ", "use -H 'Referer: URL'"},
    {" -b --cookie ", "use -H 'Cookie: NAME=VALUE'"},
    {" --oauth2-bearer ", "use -H 'Authorization: Bearer TOKEN'"},
    {" -r --range ", "use the field \"headers\" of the line: {\"Range\": \"bytes=0-99\"}"},
    {" -w --write-out --report ", "use --results FILE: each line is the report of a request"},
    {" -i --include -D --dump-header ", "use --response-headers"},
    {" -f --fail --fail-with-body ",
     "leave it out: a response of 400 or more is a failure, and the exit status is 22"},
    {" -s --silent -S --show-error --no-progress-meter --quiet -q ", "use --progress none"},
    {" -v --verbose --trace ", "use --log-json, which shows each send and each call"},
    {" -y --speed-time ", "use --set stall_timeout=%", Shown::AsWait, "30s"},
    {" -Y --speed-limit ", "use --set stall_timeout=30s"},
    {" -Z --parallel-max --parallel-immediate ", "use --parallel N"},
    {" --fail-early ", "use --max-failures 1"},
};

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }

// Returns the text that stands for `value`, the value of an unknown option, in the message that
// suggests how to replace the option. Converts the value to the form of the suggestion: after
// "--retries 3", that is "use --set max_attempts=4". Returns an example if the value is not valid.
std::string shown_value_of(const Replacement& row, const std::string& value) {
  try {
    switch (row.shown) {
      case Shown::Never: return {};  // the suggestion has no value
      case Shown::AsNumber: return std::to_string(parse_count(value, "the value"));
      case Shown::PlusOne: return std::to_string(parse_count(value, "the value") + 1);
      case Shown::AsTime: return policy_time(value, "the value");  // 0 is "none"
      case Shown::AsWait:
        // Here, 0 is not valid.
        if (auto time = policy_time(value, "the value"); time != "none") return time;
        break;
      case Shown::AsWord:  // a method such as POST
        if (value.empty() || !std::ranges::all_of(value, is_upper)) break;
        return value;
    }
  } catch (const UsageError&) {
    // The functions above throw this if the value is missing or has another form.
  }
  return std::string(row.example);
}

// Returns whether `httpretry` has the option "--name" or "-n".
bool send_has(std::string_view option) {
  const auto is_option = [option](const Flag& flag) {
    return option.starts_with("--") ? flag.name == option.substr(2) : flag.letter == option[1];
  };
  return std::ranges::any_of(send_table(), [&](const FlagGroup& group) {
    return std::ranges::any_of(group.flags, is_option);
  });
}

}  // namespace

// Returns the function that explains an option which `command`, "batch" or "work", does not have.
// It gets the option, such as "--retries" or "-X", and the text after it. It returns the end of the
// message: " is unknown to batch; use --set max_attempts=4". An empty text means that no
// explanation is known.
AboutUnknown about_unknown_in(std::string_view command) {
  return [command](std::string_view option, const std::string& value) -> std::string {
    const auto unknown = " is unknown to " + std::string(command);
    // The options of a row have a space before and after each, so "-o" is not found in "--output".
    const auto word = " " + std::string(option) + " ";
    const auto* const row = std::ranges::find_if(kReplacements, [&](const Replacement& each) {
      return each.options.find(word) != std::string_view::npos;
    });
    if (row == std::end(kReplacements)) {
      return send_has(option) ? unknown + "; only httpretry URL... has it"
                              : about_unknown_option(option);
    }
    auto suggestion = std::string(row->use);         // "%" in it stands for the value
    const auto shown = shown_value_of(*row, value);  // never contains a "%"
    for (auto at = suggestion.find('%'); at != std::string::npos; at = suggestion.find('%', at)) {
      suggestion.replace(at, 1, shown);
    }
    return unknown + "; " + suggestion;
  };
}

}  // namespace httpretry::cli
