#include "request_line.hpp"

#include "lib/core/base/encoding.hpp"
#include "lib/core/base/text.hpp"
#include "lib/core/json/detail/json.hpp"
#include "path_below.hpp"
#include "text.hpp"

#include <httpretry/retry/server_delay.hpp>

#include <algorithm>
#include <array>

namespace httpretry::batch {
namespace {

constexpr std::size_t kLongestId = 1000;
constexpr std::size_t kLongestKey = 255;  // services accept no longer ones
constexpr std::array<std::string_view, 18> kNames{
    "id",          "method",    "url",      "headers", "json", "body",
    "body_base64", "body_file", "policy",   "set",     "key",  "output",
    "not_before",  "deadline",  "priority", "cost",    "tag",  "last"};

// Returns how deep objects and arrays are nested in a value: 0 for a number, 1 for [].
std::size_t depth_of(const JsonNode& json) {
  std::size_t depth = 0;
  for (const auto* child : json.children) depth = std::max(depth, depth_of(*child));
  return depth + (json.is(JsonNode::Type::Object) || json.is(JsonNode::Type::Array) ? 1 : 0);
}

// Reads the members of a JSON object into a RequestLine. Each function reports what is wrong to
// `problems`, and then the line is not used.
class LineReader {
 public:
  LineReader(RequestLine& line, Problems& problems) : line_(line), problems_(problems) {}

  void read(const JsonNode& object) {
    for (const auto* member : object.children) read_member(*member);
    if (object.member("url") == nullptr) problems_.error(object, "it has no \"url\"");
    if (!has_method_ && line_.content != RequestLine::Content::None) line_.method = "POST";
  }

 private:
  using Content = RequestLine::Content;
  using Type = JsonNode::Type;

  // Reads the members that describe the request. Leaves the others to read_handling.
  void read_member(const JsonNode& json) {
    const auto name = json.key;
    if (name == "url") {
      if (read_text(json, line_.url)) line_.url_position = json.position;
    } else if (name == "id") {
      read_id(json);
    } else if (name == "method") {
      has_method_ = true;  // so that a body does not change it to POST
      if (read_text(json, line_.method) && !valid_header_name(line_.method)) {
        problems_.error(json, described(json) + " is not an HTTP method");
      }
    } else if (name == "headers") {
      read_headers(json);
    } else if (name == "json" || name.starts_with("body")) {
      read_body(json);
    } else {
      read_handling(json);
    }
  }

  // Reads a member that says how to handle the request, and so is not a part of it. Ignores "last",
  // the result of an earlier run, which dead letters have. Reports any other member as a problem.
  void read_handling(const JsonNode& json) {
    const auto name = json.key;
    // A problem with the policy or its settings is reported at this position.
    if (name == "policy" || name == "set") line_.policy_position = json.position;
    if (name == "policy") {
      read_text(json, line_.policy);
    } else if (name == "set") {
      read_settings(json, "");
    } else if (name == "key") {
      read_key(json);
    } else if (name == "output") {
      read_output(json);
    } else if (name == "not_before") {
      read_date(json, line_.not_before);
    } else if (name == "deadline") {
      read_date(json, line_.deadline);
    } else if (name == "priority") {
      read_priority(json);
    } else if (name == "cost") {
      read_cost(json);
    } else if (name == "tag") {
      read_tag(json);
    } else if (name != "last") {
      problems_.error_at_key(json, "unknown key" + problems_.suggestion(name, kNames));
    }
  }

  // Returns `is_valid`, and reports what was expected if it is false.
  bool expect(const JsonNode& json, bool is_valid, const std::string& expected) {
    if (!is_valid)
      problems_.error(json, "expected " + expected + ", but this is " + described(json));
    return is_valid;
  }

  // Reads a string that must not be empty into `output`. Reports anything else as a problem and
  // returns false.
  bool read_text(const JsonNode& json, std::string& output) {
    if (!expect(json, json.is(Type::String), "a string")) return false;
    if (json.text.empty()) {
      problems_.error(json, "must not be empty");
      return false;
    }
    output = json.text;
    return true;
  }

  void read_id(const JsonNode& json) {
    line_.id_position = json.position;
    if (json.is(Type::Number) && to_number<std::int64_t>(json.text)) {
      line_.id = json.text;
    } else if (read_text(json, line_.id) && line_.id.size() > kLongestId) {
      problems_.error(json, "an id has at most " + std::to_string(kLongestId) + " bytes");
    }
  }

  // Reads an object whose values are strings, or arrays of strings for repeated headers.
  void read_headers(const JsonNode& json) {
    if (!expect(json, json.is(Type::Object), "an object")) return;
    for (const auto* field : json.children) {
      if (!field->is(Type::Array)) {
        add_header(*field, field->key);
        continue;
      }
      for (const auto* value : field->children) add_header(*value, field->key);
    }
  }

  void add_header(const JsonNode& value, std::string_view name) {
    if (!expect(value, value.is(Type::String), "a string or an array of strings")) return;
    if (line_.headers.try_add(name, value.text)) return;
    problems_.error(value, "\"" + printable(name) +
                               "\" is not a header: a name has letters, digits and "
                               "-, a value no line break and no control character");
  }

  // Reads "json" or a member that begins with "body": "body", "body_base64" or "body_file". Reports
  // another such name, and a second body.
  void read_body(const JsonNode& json) {
    const auto name = json.key;
    const bool is_known = std::ranges::find(kNames, name) != kNames.end();
    if (!is_known) {
      return problems_.error_at_key(json, "unknown key" + problems_.suggestion(name, kNames));
    }
    if (line_.content != Content::None) {
      return problems_.error_at_key(json,
                                    "a request has one of json, body, body_base64 and body_file");
    }
    line_.content = name == "json"        ? Content::Json
                    : name == "body_file" ? Content::File
                                          : Content::Bytes;
    if (name == "json") {
      line_.body = compact(json);
    } else if (name == "body_file") {
      line_.file_position = json.position;
      read_text(json, line_.body);
    } else if (!expect(json, json.is(Type::String), "a string")) {
      return;
    } else if (name == "body") {
      line_.body = json.text;
    } else if (auto bytes = decode_base64(json.text)) {
      line_.body = *std::move(bytes);
    } else {
      problems_.error(json, "is not base64");
    }
  }

  // Adds settings in the form of `--set`: {"backoff": {"initial": "1s"}} becomes backoff.initial.
  void read_settings(const JsonNode& json, const std::string& prefix) {
    if (!expect(json, json.is(Type::Object), "an object")) return;
    for (const auto* member : json.children) {
      const auto key = prefix + std::string(member->key);
      if (member->is(Type::Object)) {
        read_settings(*member, key + ".");
      } else {
        line_.settings.emplace_back(key, compact(*member));
      }
    }
  }

  // Reads the idempotency key: a text, or true for a key that is made from the number of the line.
  void read_key(const JsonNode& json) {
    line_.key_position = json.position;
    line_.wants_key = true;
    if (json.is(Type::Boolean) && json.boolean) return;
    const bool has_text = json.is(Type::String) && !json.text.empty();
    if (!expect(json, has_text, "a string, or true for a generated key")) return;
    line_.key = json.text;
    if (line_.key.size() > kLongestKey || !valid_header_value(line_.key)) {
      problems_.error(json, "a key has at most " + std::to_string(kLongestKey) +
                                " bytes, and no control character");
    }
  }

  // The path must not lead out of the directory that the user has named.
  void read_output(const JsonNode& json) {
    line_.output_position = json.position;
    if (!read_text(json, line_.output) || is_plain_relative(line_.output)) return;
    problems_.error(json, "must be a relative path without . and ..");
  }

  void read_date(const JsonNode& json, std::optional<WallTime>& date) {
    if (json.is(Type::String)) date = parse_rfc3339(json.text);
    expect(json, date.has_value(), "a date from 1970 to 2199, such as \"2026-11-24T08:00:00Z\"");
  }

  // A dead letter is a line of an input, too. Its result, the member "last", has the tag again, so
  // the tag is two levels below the object of the line.
  void read_tag(const JsonNode& json) {
    constexpr auto kMaxDepth = kMaxJsonDepth - 2;
    line_.tag = compact(json);
    if (depth_of(json) <= kMaxDepth) return;
    problems_.error(json, "nested deeper than " + std::to_string(kMaxDepth) +
                              ", the limit for a tag, which dead letters repeat");
  }

  void read_priority(const JsonNode& json) {
    constexpr std::array<std::string_view, 3> words{"high", "normal", "low"};  // as in Priority
    const auto found = json.is(Type::String) ? std::ranges::find(words, json.text) : words.end();
    if (!expect(json, found != words.end(), "\"high\", \"normal\" or \"low\"")) return;
    line_.priority = static_cast<Priority>(found - words.begin());
  }

  void read_cost(const JsonNode& json) {
    const auto cost = json.is(Type::Number) ? to_number<std::uint64_t>(json.text) : std::nullopt;
    if (expect(json, cost.has_value(), "a whole number of at least 0")) line_.cost = *cost;
  }

  RequestLine& line_;
  Problems& problems_;
  bool has_method_ = false;
};

void read_url(RequestLine& line, Problems& problems) {
  auto parsed = Url::parse(line.url);
  if (parsed) {
    line.parsed_url = *std::move(parsed);
  } else {
    problems.error(line.url_position, "", parsed.error().message);
  }
}

// Returns the text of the object without its member "last", which it must have, and without the
// comma behind that member. If "last" is the last member, removes the comma before it instead.
std::string without_last(std::string_view text, const JsonNode& object) {
  // Columns count from 1, and the text is a single line.
  const auto offset_of = [](const JsonNode& member) {
    return static_cast<std::size_t>(member.key_position.column - 1);
  };
  const auto* const last = object.member("last");
  const auto& members = object.children;
  auto before = text.substr(0, offset_of(*last));
  const auto next = std::next(std::ranges::find(members, last));
  if (next != members.end()) {
    return std::string(before) + std::string(text.substr(offset_of(**next)));
  }
  before = before.substr(0, before.find_last_not_of(" \t,") + 1);
  return std::string(before) + "}";
}

}  // namespace

// Parses a line of the input, which is a JSON object or a bare URL, into `line`. Returns false if
// it is invalid, after adding what is wrong to `problems`. The format decides how to read the line.
// With InputFormat::Auto, a text that begins with a brace is a JSON object, and any other is a URL.
bool detail::read_request_line(std::string_view text, InputFormat format, RequestLine& line,
                               Problems& problems) {
  const auto begin = std::min(text.find_first_not_of(" \t"), text.size());
  const bool is_object = text.substr(begin).starts_with('{');
  const bool is_url = format == InputFormat::Urls || (format == InputFormat::Auto && !is_object);
  if (is_url) {
    line.url = trimmed(text);
    line.url_position = {.line = 1, .column = static_cast<int>(begin) + 1};
  } else {
    JsonTree tree;
    read_json(text, tree, problems);
    if (tree.root == nullptr) return false;  // read_json() has reported why
    if (!tree.root->is(JsonNode::Type::Object)) {
      problems.error(*tree.root, "expected an object, but this is " + described(*tree.root));
      return false;
    }
    LineReader(line, problems).read(*tree.root);
    // In a dead letter, "last" is the result of an earlier run, and no part of the request.
    if (tree.root->member("last") != nullptr) {
      line.text_without_last = without_last(text, *tree.root);
    }
  }
  // LineReader has reported an object without a URL.
  const bool url_was_reported = line.url.empty() && problems.failed();
  if (!url_was_reported) read_url(line, problems);
  return !problems.failed();
}

RequestLine detail::stored_line(std::string_view text, InputFormat format) {
  RequestLine line;
  Problems problems("");
  read_request_line(text, format, line, problems);
  return line;
}

// Returns a line of the input as an input for another run: as JSON, with the id of its job, and
// with its idempotency key unless that is empty. If `last` is not empty, this JSON becomes the
// member "last". `text` is the line, a JSON object or a bare URL, and `line` is the same after
// parsing.
//   https://example.com/a  ->  {"id":"7","url":"https://example.com/a","last":{…}}
// Copies the members of an object as they are, and writes the missing id and key before them.
std::string detail::line_with(std::string_view text, const RequestLine& line, std::string_view id,
                              std::string_view key, std::string_view last) {
  std::string output = "{";
  // Appends a member and a comma.
  const auto add = [&](std::string_view name, std::string_view value) {
    append_json_string(output.append("\"").append(name).append("\":"), value);
    output += ',';
  };
  const auto brace = text.find('{');
  const bool is_object = brace != std::string_view::npos && text.find_first_not_of(" \t") == brace;
  // The line has "key": true, for a generated key. A second member "key" would be wrong, so `true`
  // is replaced by the key.
  const bool replaces_key = is_object && line.wants_key && line.key.empty();
  if (line.id.empty()) add("id", id);
  if (line.key.empty() && !key.empty() && !replaces_key) add("key", key);
  if (replaces_key) {
    // The offset of `true`. Columns count from 1.
    const auto value_begin = static_cast<std::size_t>(line.key_position.column - 1);
    output += text.substr(brace + 1, value_begin - brace - 1);
    append_json_string(output, key);
    text.remove_prefix(value_begin + std::string_view("true").size());
    output += text.substr(0, text.rfind('}'));
  } else if (is_object) {
    output += text.substr(brace + 1, text.rfind('}') - brace - 1);
  } else {
    add("url", utf8_url(trimmed(text)));
    output.pop_back();  // the comma: no member follows
  }
  if (!last.empty()) output.append(",\"last\":").append(last);
  return output + "}";
}

}  // namespace httpretry::batch
