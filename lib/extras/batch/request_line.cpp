#include "request_line.hpp"

#include "lib/core/base/text.hpp"
#include "lib/core/json/detail/json.hpp"
#include "path_below.hpp"
#include "text.hpp"

#include <algorithm>
#include <array>

namespace httpretry::batch {
namespace {

constexpr std::size_t kLongestId = 1000;
constexpr std::size_t kLongestKey = 255;  // services accept no longer ones
constexpr std::array<std::string_view, 17> kNames{
    "id",          "method",    "url",      "headers", "json", "body",
    "body_base64", "body_file", "policy",   "set",     "key",  "output",
    "not_before",  "deadline",  "priority", "tag",     "last"};

class LineReader {
 public:
  LineReader(RequestLine& to, Problems& problems) : to_(to), problems_(problems) {}

  void read(const JsonNode& object) {
    for (const auto* member : object.children) read_member(*member);
    if (object.member("url") == nullptr) problems_.error(object, "it has no \"url\"");
    if (!method_ && to_.content != RequestLine::Content::None) to_.method = "POST";
  }

 private:
  using Content = RequestLine::Content;
  using Type = JsonNode::Type;

  void read_member(const JsonNode& json) {
    const auto name = json.key;
    if (name == "url") {
      if (text(json, to_.url)) to_.url_position = json.position;
    } else if (name == "id") {
      read_id(json);
    } else if (name == "method") {
      method_ = true;
      if (text(json, to_.method) && !valid_header_name(to_.method)) {
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

  // Reads the members that say how to handle the request. The server does not see them.
  void read_handling(const JsonNode& json) {
    const auto name = json.key;
    if (name == "policy" || name == "set") to_.policy_position = json.position;
    if (name == "policy") {
      text(json, to_.policy);
    } else if (name == "set") {
      read_settings(json, "");
    } else if (name == "key") {
      read_key(json);
    } else if (name == "output") {
      read_output(json);
    } else if (name == "not_before") {
      read_date(json, to_.not_before);
    } else if (name == "deadline") {
      read_date(json, to_.deadline);
    } else if (name == "priority") {
      read_priority(json);
    } else if (name == "tag") {
      to_.tag = compact(json);
    } else if (name != "last") {
      problems_.error_at_key(json, "unknown key" + problems_.suggestion(name, kNames));
    }
  }

  bool expect(const JsonNode& json, bool found, const std::string& what) {
    if (!found) problems_.error(json, "expected " + what + ", but this is " + described(json));
    return found;
  }

  bool text(const JsonNode& json, std::string& to) {
    if (!expect(json, json.is(Type::String), "a string")) return false;
    if (json.text.empty()) {
      problems_.error(json, "must not be empty");
      return false;
    }
    to = json.text;
    return true;
  }

  void read_id(const JsonNode& json) {
    to_.id_position = json.position;
    if (json.is(Type::Number) && to_number<std::int64_t>(json.text)) {
      to_.id = json.text;
    } else if (text(json, to_.id) && to_.id.size() > kLongestId) {
      problems_.error(json, "an id has at most " + std::to_string(kLongestId) + " bytes");
    }
  }

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
    if (to_.headers.try_add(name, value.text)) return;
    problems_.error(value, "\"" + printable(name) +
                               "\" is not a header: a name has letters, digits and "
                               "-, a value no line break and no control character");
  }

  void read_body(const JsonNode& json) {
    const auto name = json.key;
    const auto is_one = std::ranges::find(kNames, name) != kNames.end();
    if (!is_one) {
      return problems_.error_at_key(json, "unknown key" + problems_.suggestion(name, kNames));
    }
    if (to_.content != Content::None) {
      return problems_.error_at_key(json,
                                    "a request has one of json, body, body_base64 and body_file");
    }
    to_.content = name == "json"        ? Content::Json
                  : name == "body_file" ? Content::File
                                        : Content::Bytes;
    if (name == "json") {
      to_.body = compact(json);
    } else if (name == "body_file") {
      to_.file_position = json.position;
      text(json, to_.body);
    } else if (!expect(json, json.is(Type::String), "a string")) {
      return;
    } else if (name == "body") {
      to_.body = json.text;
    } else if (auto bytes = decode_base64(json.text)) {
      to_.body = *std::move(bytes);
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
        to_.settings.emplace_back(key, compact(*member));
      }
    }
  }

  void read_key(const JsonNode& json) {
    to_.key_position = json.position;
    to_.wants_key = true;
    if (json.is(Type::Boolean) && json.boolean) return;
    const bool given = json.is(Type::String) && !json.text.empty();
    if (!expect(json, given, "a string, or true for a key that is made")) return;
    to_.key = json.text;
    if (to_.key.size() > kLongestKey || !valid_header_value(to_.key)) {
      problems_.error(json, "a key has at most " + std::to_string(kLongestKey) +
                                " bytes, and no control character");
    }
  }

  // The path must not lead out of the directory that the user has named.
  void read_output(const JsonNode& json) {
    to_.output_position = json.position;
    if (!text(json, to_.output) || is_plain_relative(to_.output)) return;
    problems_.error(json, "must be a relative path without . and ..");
  }

  void read_date(const JsonNode& json, std::optional<WallTime>& to) {
    if (json.is(Type::String)) to = parse_rfc3339(json.text);
    expect(json, to.has_value(), "a date such as \"2026-11-24T08:00:00Z\"");
  }

  void read_priority(const JsonNode& json) {
    constexpr std::array<std::string_view, 3> words{"high", "normal", "low"};
    const auto found = json.is(Type::String) ? std::ranges::find(words, json.text) : words.end();
    if (!expect(json, found != words.end(), "\"high\", \"normal\" or \"low\"")) return;
    to_.priority = static_cast<Priority>(found - words.begin());
  }

  RequestLine& to_;
  Problems& problems_;
  bool method_ = false;
};

void read_url(RequestLine& line, Problems& problems) {
  auto parsed = Url::parse(line.url);
  if (parsed) {
    line.parsed_url = *std::move(parsed);
  } else {
    problems.error(line.url_position, "", parsed.error().message);
  }
}

// Returns the object without its member "last" and without the comma before or behind it.
std::string without_last(std::string_view text, const JsonNode& object) {
  const auto* const last = object.member("last");
  const auto begin = static_cast<std::size_t>(last->key_position.column - 1);
  const auto& members = object.children;
  const auto at = std::ranges::find(members, last) - members.begin();
  if (at + 1 < std::ssize(members)) {
    const auto next = members[static_cast<std::size_t>(at + 1)]->key_position.column - 1;
    return std::string(text.substr(0, begin)) +
           std::string(text.substr(static_cast<std::size_t>(next)));
  }
  auto before = text.substr(0, begin);
  before = before.substr(0, before.find_last_not_of(" \t,") + 1);
  return std::string(before) + "}";
}

}  // namespace

bool read_request_line(std::string_view text, InputFormat format, RequestLine& to,
                       Problems& problems) {
  const auto first = text.find_first_not_of(" \t");
  const bool object = first != std::string_view::npos && text[first] == '{';
  if (format == InputFormat::Urls || (format == InputFormat::Auto && !object)) {
    to.url = trimmed(text);
    to.url_position = {1, static_cast<int>(std::min(first, text.size())) + 1};
  } else {
    JsonTree tree;
    read_json(text, tree, problems);
    if (tree.root == nullptr) return false;
    if (!tree.root->is(JsonNode::Type::Object)) {
      problems.error(*tree.root, "expected an object, but this is " + described(*tree.root));
      return false;
    }
    LineReader(to, problems).read(*tree.root);
    if (tree.root->member("last") != nullptr) to.text_without_last = without_last(text, *tree.root);
  }
  if (!to.url.empty() || !problems.failed()) read_url(to, problems);
  return !problems.failed();
}

RequestLine stored_line(std::string_view text, InputFormat format) {
  RequestLine line;
  Problems problems("");
  read_request_line(text, format, line, problems);
  return line;
}

std::string line_with(std::string_view text, const RequestLine& line, std::string_view id,
                      std::string_view key, std::string_view last) {
  std::string made = "{";
  const auto add = [&](std::string_view name, std::string_view value) {
    append_json_string(made.append("\"").append(name).append("\":"), value);
    made += ',';
  };
  if (line.id.empty()) add("id", id);
  if (line.key.empty() && !key.empty()) add("key", key);
  const auto open = text.find('{');
  const bool object = text.find_first_not_of(" \t") == open && open != std::string_view::npos;
  if (object && line.wants_key && line.key.empty()) {
    // The line has "key": true. A name must not occur twice, so the value is replaced.
    made.clear();
    made += '{';
    if (line.id.empty()) add("id", id);
    const auto at = static_cast<std::size_t>(line.key_position.column - 1);
    made += text.substr(open + 1, at - open - 1);
    append_json_string(made, key);
    text.remove_prefix(at + std::string_view("true").size());
    made += text.substr(0, text.rfind('}'));
  } else if (object) {
    made += text.substr(open + 1, text.rfind('}') - open - 1);
  } else {
    add("url", trimmed(text));
    made.pop_back();
  }
  if (!last.empty()) made.append(",\"last\":").append(last);
  return made + "}";
}

}  // namespace httpretry::batch
