// Recorded responses: reads them from an HTTP archive, and finds the one for a request.
#include "lib/core/base/encoding.hpp"
#include "lib/core/base/text.hpp"
#include "lib/core/policy/detail/keys.hpp"

#include <httpretry/http/url.hpp>
#include <httpretry/testing/testing.hpp>

#include <algorithm>
#include <mutex>
#include <stdexcept>

namespace httpretry {
namespace {

using JsonType = JsonNode::Type;

constexpr std::string_view kRedacted = "REDACTED";

// The path and the query of a request.
struct Target {
  std::string path;
  std::string query;
};

Target target_of(const Url& url) { return {std::string(url.path()), std::string(url.query())}; }

// Reads the target of a request line: "/a?b", or "http://host/a?b" if the client uses a proxy.
Target target_of(std::string_view line) {
  if (!line.starts_with('/')) {
    if (const auto url = Url::parse(line)) return target_of(*url);
  }
  const auto path = take_until(line, '?');
  return {std::string(path), std::string(line)};
}

// Returns whether the text is a URL of another scheme than http or https, such as "wss://host/" or
// "data:,x".
bool has_other_scheme(std::string_view url) {
  const auto scheme = url.substr(0, url.find_first_of(":/?#"));
  return scheme.size() < url.size() && url[scheme.size()] == ':' &&
         !equal_ignoring_case(scheme, "http") && !equal_ignoring_case(scheme, "https");
}

// Returns whether the item of a recorded query, "name=value", stands for this item.
bool matches_item(std::string_view recorded, std::string_view item) {
  if (recorded == item) return true;
  const auto equals = item.find('=');
  if (equals == std::string_view::npos) return recorded == kRedacted;
  return recorded.starts_with(item.substr(0, equals + 1)) &&
         recorded.substr(equals + 1) == kRedacted;
}

bool matches_query(std::string_view recorded, std::string_view query) {
  while (!recorded.empty() && !query.empty()) {
    if (!matches_item(take_until(recorded, '&'), take_until(query, '&'))) return false;
  }
  return recorded.empty() && query.empty();
}

// The responses that were recorded for a method, a path and a query, in their order.
struct Recorded {
  std::string method;
  Target target;
  std::vector<Step> steps;
  std::size_t next = 0;
};

// A response for a request, and why it is not a recorded one; "" if it is.
struct Reply {
  Step step;
  std::string problem;
};

Reply refusal(std::string problem) {
  Step step(501, Headers{{"Content-Type", "text/plain"}}, problem + '\n');
  return {std::move(step), std::move(problem)};
}

// The status of the step for a response whose body the archive lacks. FaultServer sends no such
// status.
constexpr int kNoBody = 0;

class Recording {
 public:
  explicit Recording(std::vector<Recorded> all) : all_(std::move(all)) {}

  // Returns the next response that was recorded for the request. After the last one, returns that
  // one again. If the archive lacks such a response or its body, returns a refusal: a response with
  // status 501 that says what is missing. Thread-safe.
  Reply reply_to(const std::string& method, const Target& target) {
    const std::lock_guard lock(mutex_);
    // An archive may have REDACTED in place of the values of a query, which matches any values. A
    // recording of exactly this query is preferred.
    auto* recorded = find(method, target, std::equal_to<>());
    if (recorded == nullptr) recorded = find(method, target, matches_query);
    const auto request =
        method + ' ' + target.path + (target.query.empty() ? "" : '?' + target.query);
    if (recorded == nullptr) return refusal("no response to " + request + " was recorded");
    const auto& step = recorded->steps[recorded->next];
    if (recorded->next + 1 < recorded->steps.size()) ++recorded->next;
    if (step.status == kNoBody) {  // marks a response whose body is not in the archive
      return refusal("the response to " + request +
                     " was recorded without its body; httpretry records bodies with --har-bodies");
    }
    return {step, /*problem=*/{}};
  }

 private:
  // `matches(recorded query, query)` compares the queries.
  template <class Matches>
  Recorded* find(const std::string& method, const Target& target, Matches matches) {
    const auto found = std::ranges::find_if(all_, [&](const Recorded& each) {
      return each.method == method && each.target.path == target.path &&
             matches(each.target.query, target.query);
    });
    return found == all_.end() ? nullptr : &*found;
  }

  std::mutex mutex_;
  std::vector<Recorded> all_;
};

// Reads an archive, and reports its problems with their positions.
class Reader {
 public:
  explicit Reader(Problems& problems) : problems_(problems) {}

  std::vector<Recorded> read(const JsonNode& root) {
    const auto* log = member(root, "log", JsonType::Object);
    const auto* entries = log == nullptr ? nullptr : member(*log, "entries", JsonType::Array);
    if (entries == nullptr) return {};
    for (const auto* entry : entries->children) note_origin(*entry);
    for (const auto* entry : entries->children) read_entry(*entry);
    if (all_.empty() && !problems_.failed()) {
      problems_.error(*entries, "the archive has no response");
    }
    return std::move(all_);
  }

 private:
  // Returns a member of this type. If the object lacks it, reports a problem and returns nullptr.
  const JsonNode* member(const JsonNode& of, std::string_view name, JsonType type) {
    const auto* found = of.is(JsonType::Object) ? of.find(name) : nullptr;
    if (found != nullptr && found->is(type)) return found;
    const char* expected = type == JsonType::Object   ? "an object"
                           : type == JsonType::Array  ? "an array"
                           : type == JsonType::Number ? "a number"
                                                      : "a string";
    problems_.error(found == nullptr ? of : *found,
                    "expected " + std::string(expected) +
                        (found == nullptr ? " \"" + std::string(name) + "\" here" : ""));
    return nullptr;
  }
  static std::string_view text_of(const JsonNode& of, std::string_view name) {
    const auto* found = of.find(name);
    return found != nullptr && found->is(JsonType::String) ? found->text : std::string_view();
  }

  // A Location or Link on one of these origins must lead to the server that replays.
  void note_origin(const JsonNode& entry) {
    const auto* request = entry.is(JsonType::Object) ? entry.find("request") : nullptr;
    if (request == nullptr || !request->is(JsonType::Object)) return;
    if (const auto url = Url::parse(text_of(*request, "url"))) {
      origins_.emplace_back(url->origin());
    }
  }

  // Adds the recorded response of an entry. Leaves out an entry with another scheme than http or
  // https, and one without a response or an error that a server can repeat. If the entry is
  // malformed, reports a problem and adds nothing.
  void read_entry(const JsonNode& entry) {
    const auto* request = member(entry, "request", JsonType::Object);
    // Browsers also record WebSockets, for example.
    if (request != nullptr && has_other_scheme(text_of(*request, "url"))) return;
    const auto* response = member(entry, "response", JsonType::Object);
    if (request == nullptr || response == nullptr) return;  // member() has reported the problem
    const auto* method = member(*request, "method", JsonType::String);
    const auto* url_text = member(*request, "url", JsonType::String);
    const auto* status = member(*response, "status", JsonType::Number);
    if (method == nullptr || url_text == nullptr || status == nullptr) return;
    const auto url = Url::parse(url_text->text);
    if (!url) return problems_.error(*url_text, url.error().message);
    auto step = read_response(*response, *status, method->text == "HEAD");
    if (!step) return;  // nothing to repeat, or a problem that read_response() has reported
    add(std::string(method->text), target_of(*url), *std::move(step));
  }

  // Adds a step to those that were recorded for the same method, path and query.
  void add(std::string method, Target target, Step step) {
    const auto same = [&](const Recorded& each) {
      return each.method == method && each.target.path == target.path &&
             each.target.query == target.query;
    };
    auto found = std::ranges::find_if(all_, same);
    if (found == all_.end()) {
      all_.push_back({std::move(method), std::move(target), {}});
      found = all_.end() - 1;
    }
    found->steps.push_back(std::move(step));
  }

  // Returns the step with which a server repeats a recorded response, or the error that the client
  // got instead (its name is in "_error"). `is_head` says that the request was a HEAD, so that its
  // response has no body. Returns nullopt if there is nothing to repeat, and after a problem, which
  // it reports.
  std::optional<Step> read_response(const JsonNode& response, const JsonNode& status,
                                    bool is_head) {
    const auto error = text_of(response, "_error");  // "" if there was no error
    const auto code = to_number<int>(status.text);
    if (!code || *code > 999) {
      problems_.error(status, "expected a status from 200 to 999, or 0 for no response");
      return std::nullopt;
    }
    if (*code <= 0) {  // no response; some programs write -1
      if (error == "timeout") return Step(Fault::Hang);
      if (error == "receive" || error == "send") return Step(Fault::Reset);
      return std::nullopt;  // the server did not see the request
    }
    if (*code < 200) return std::nullopt;  // an interim response, or a change of the protocol
    Step step(*code);
    // The response broke off. The archive lacks such a body, so the server sends a part of filler.
    if (!error.empty()) step.fault = Fault::Truncate;
    const auto* content = response.find("content");
    if (content != nullptr && !content->is(JsonType::Object)) content = nullptr;
    // An archive has bodies without their Content-Encoding, unless this key says otherwise.
    const auto* encoded = content == nullptr ? nullptr : content->find("_encoded");
    read_headers(response, step, is_head, /*is_encoded=*/encoded != nullptr && encoded->boolean);
    const bool has_whole_body = content != nullptr && !is_head && error.empty();
    if (has_whole_body && !read_body(*content, step)) return std::nullopt;
    return step;
  }

  // Reads the body from the member "content" of a response into the step. If the archive lacks the
  // body, the step gets the status kNoBody, and reply_to() refuses requests for it. Returns false
  // after a problem, which it reports.
  bool read_body(const JsonNode& content, Step& step) {
    const auto* text = content.find("text");
    if (text == nullptr) {  // the body is empty, or the archive lacks it
      const auto* size_node = content.find("size");
      const auto size =
          size_node == nullptr ? std::nullopt : to_number<std::int64_t>(size_node->text);
      if (size && *size > 0) step = Step(kNoBody);
      return true;
    }
    if (!text->is(JsonType::String))
      return policy_file::refuse(*text, problems_, "expected a string");
    const auto encoding = text_of(content, "encoding");  // "" if the text is the body itself
    const bool is_base64 = encoding == "base64";
    auto body = is_base64 ? decode_base64(text->text) : std::string(text->text);
    if (!encoding.empty() && !is_base64) {
      return policy_file::refuse(*text, problems_,
                                 "the encoding is not base64, the only one that HAR defines");
    }
    if (!body) return policy_file::refuse(*text, problems_, "this is not base64");
    step.body = *std::move(body);
    return true;
  }

  // Adds the recorded headers to the step, except headers about the original connection, headers
  // that do not match the body in the archive, and redacted ones. `is_encoded` is true if the body
  // still has its Content-Encoding. `is_head` is true if the request was a HEAD, whose response has
  // no body.
  void read_headers(const JsonNode& response, Step& step, bool is_head, bool is_encoded) {
    const auto* headers = response.find("headers");
    if (headers == nullptr || !headers->is(JsonType::Array)) return;
    for (const auto* header : headers->children) {
      const auto* name = member(*header, "name", JsonType::String);
      const auto* value = member(*header, "value", JsonType::String);
      if (name == nullptr || value == nullptr) continue;  // member() has reported the problem
      const auto is = [&](std::string_view other) {
        return equal_ignoring_case(name->text, other);
      };
      // Names that begin with ":" are the pseudo-headers of HTTP/2.
      const bool is_about_connection = is("Connection") || is("Keep-Alive") ||
                                       is("Transfer-Encoding") || is("Alt-Svc") ||
                                       name->text.starts_with(':');
      // The server adds the length of the body that it sends. For a HEAD, it has no body, and
      // repeats the recorded length.
      const bool is_about_original_body =
          (is("Content-Length") && !is_head) || (is("Content-Encoding") && !is_encoded);
      if (is_about_connection || is_about_original_body || value->text == kRedacted) continue;
      // local() and local_links() make the URL of a recorded server relative, so that it leads to
      // this server.
      const auto text = is("Location") ? local(value->text)
                        : is("Link")   ? local_links(value->text)
                                       : std::string(value->text);
      if (!add_each_line(name->text, text, step.headers)) {
        problems_.error(*header, "this cannot be sent as a header");
      }
    }
  }

  // Adds a header for each line of the value: Chrome records several Set-Cookie headers as one with
  // several lines. Returns false if a header cannot be sent.
  static bool add_each_line(std::string_view name, std::string_view lines, Headers& headers) {
    do {
      if (!headers.try_add(name, take_until(lines, '\n'))) return false;
    } while (!lines.empty());
    return true;
  }

  // Returns the reference without its scheme and host if they are those of a recorded request.
  [[nodiscard]] std::string local(std::string_view reference) const {
    const auto url = Url::parse(reference);
    if (!url || std::ranges::find(origins_, url->origin()) == origins_.end()) {
      return std::string(reference);
    }
    const auto [path, query] = target_of(*url);
    return path + (query.empty() ? "" : '?' + query);
  }

  // Returns the value of a Link header in which local() has changed each URL, "<URL>".
  [[nodiscard]] std::string local_links(std::string_view value) const {
    std::string changed;
    for (auto end = value.find('>'); end != value.npos; end = value.find('>')) {
      const auto begin = value.substr(0, end).rfind('<') + 1;  // 0: there is no "<"
      changed.append(value.substr(0, begin)).append(local(value.substr(begin, end - begin))) += '>';
      value.remove_prefix(end + 1);
    }
    return changed.append(value);
  }

  Problems& problems_;
  std::vector<std::string> origins_;
  std::vector<Recorded> all_;
};

Result<std::shared_ptr<Recording>> parse(std::string_view json, std::string file_name) {
  Problems problems(std::move(file_name));
  JsonTree tree;
  read_json(json, tree, problems);
  std::vector<Recorded> all;
  if (tree.root != nullptr) all = Reader(problems).read(*tree.root);
  if (problems.failed()) return Error(Errc::InvalidRequest, error_lines(problems.take()));
  return std::make_shared<Recording>(std::move(all));
}

// Returns the outcome that a transport would have for a step of a recording: the recorded response,
// or the error of its fault. The fault is Hang, Reset, or Truncate (the connection breaks after the
// headers).
Outcome outcome_of(Step step) {
  if (step.fault == Fault::None) {
    Response response(step.status, std::move(step.body));
    response.headers = std::move(step.headers);
    return response;
  }
  const bool hangs = step.fault == Fault::Hang;
  Error error(hangs ? Errc::Timeout : Errc::Receive,
              hangs ? "no response in time" : "the connection broke");
  error.curl_code = hangs ? 28 : 56;  // CURLE_OPERATION_TIMEDOUT, CURLE_RECV_ERROR
  if (step.fault == Fault::Truncate) {
    error.partial = true;  // the client got a part of the response
    error.status = step.status;
    error.headers = std::move(step.headers);
  }
  return error;
}

}  // namespace

// Returns a scenario whose step computes each response from the recording.
Result<Scenario> parse_har(std::string_view json, std::string file_name,
                           std::function<void(const std::string& reason)> on_unmatched) {
  auto parsed = parse(json, std::move(file_name));
  if (!parsed) return std::move(parsed).error();
  Step step;
  step.respond = [recording = *std::move(parsed),
                  report = std::move(on_unmatched)](const SeenRequest& request) {
    auto reply = recording->reply_to(request.method, target_of(request.target));
    if (!reply.problem.empty() && report) report(reply.problem);
    return std::move(reply.step);
  };
  return Scenario{std::move(step)};
}

std::shared_ptr<ScriptedTransport> ScriptedTransport::from_har(std::string_view json,
                                                               std::string file_name) {
  auto parsed = parse(json, std::move(file_name));
  if (!parsed) throw std::invalid_argument(parsed.error().message);
  auto transport = std::make_shared<ScriptedTransport>();
  transport->say([recording = *std::move(parsed)](const Request& request, int /*number*/) {
    const auto target = target_of(*request.parsed_url());
    return outcome_of(recording->reply_to(request.method(), target).step);
  });
  return transport;
}

}  // namespace httpretry
