// The bridge to nlohmann_json: JSON values as bodies of requests, and from responses. Include it in
// addition to httpretry.hpp. No other header includes it.
//
//   auto created = client.post(url, nlohmann::json{{"name", "Ann"}});
//   const auto user = httpretry::get_json<User>(client, url);
//   if (!user) std::cerr << user.error().message;  // "https://…: line 2, column 7: not JSON: …"
#pragma once

#include <httpretry/export.hpp>

#include <httpretry/client/client.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace httpretry {

// Makes a JSON value the body of a request. A string in it that is not UTF-8 makes nlohmann_json
// throw type_error.
template <>
struct BodyOf<nlohmann::json> {
  static Body body(const nlohmann::json& value) { return value.dump(); }
  static std::string content_type(const nlohmann::json& /*value*/) { return "application/json"; }
};
// The same for JSON that keeps the order of its keys.
template <>
struct BodyOf<nlohmann::ordered_json> {
  static Body body(const nlohmann::ordered_json& value) { return value.dump(); }
  static std::string content_type(const nlohmann::ordered_json& /*value*/) {
    return "application/json";
  }
};

namespace detail {

inline Error json_error(Errc code, const Response& response, const std::string& problem) {
  const auto url = Url::parse(response.url);
  Error error(code, (url ? url->without_secrets() + ": " : "") + problem);
  error.status = response.status;
  error.exchange = response.exchange;
  error.history = response.history;
  return error;
}

// Returns "line 2, column 7" for the byte at `index`.
inline std::string json_position(std::string_view text, std::size_t index) {
  const auto before = text.substr(0, index);
  const auto line_start = before.rfind('\n') + 1;  // 0 in the first line
  return "line " + std::to_string(std::count(before.begin(), before.end(), '\n') + 1) +
         ", column " + std::to_string(before.size() - line_start + 1);
}

}  // namespace detail

// Returns the body of the response as JSON, whatever its status. If there is no response, returns
// its error. If the body is not JSON, returns Errc::Protocol with the URL and the position of the
// mistake; if it is incomplete or went to a sink, Errc::InvalidRequest.
inline Result<nlohmann::json> json_of(const Outcome& outcome) {
  if (!outcome) return outcome.error();
  const Response& response = *outcome;
  if (response.incomplete || (response.body.empty() && response.delivered > 0)) {
    return detail::json_error(Errc::InvalidRequest, response,
                              response.incomplete ? "only a part of the body was received"
                                                  : "the body went to the sink of the request");
  }
  // Some functions of nlohmann_json recurse, so a body that is nested without end would exhaust the
  // stack.
  constexpr int kDeepest = 512;
  bool too_deep = false;
  // The parser discards each value for which this returns false.
  const auto check_depth = [&](int depth, auto /*event*/, auto& /*value*/) {
    too_deep = too_deep || depth > kDeepest;
    return !too_deep;
  };
  std::string problem;
  try {
    auto document = nlohmann::json::parse(response.body, check_depth);
    if (!too_deep) return document;
  } catch (const nlohmann::json::parse_error& error) {
    // `byte` counts from 1; 0 stands for an unknown position.
    const auto index = std::min(error.byte > 0 ? error.byte - 1 : 0, response.body.size());
    problem = detail::json_position(response.body, index) +
              (index == response.body.size() ? ": the JSON ends too early" : ": not JSON");
  }
  if (too_deep) problem = "the JSON is nested too deeply";
  return detail::json_error(Errc::Protocol, response, problem);
}

// Sends a GET with "Accept: application/json" and returns the body of the successful response as a
// T, which nlohmann_json must know how to read (from_json). A response that is a failure according
// to the policy is Errc::Status.
template <class T = nlohmann::json>
Result<T> get_json(Client& client, std::string url, CallOptions options = CallOptions()) {
  auto outcome = client.send(Request::get(std::move(url)).header("Accept", "application/json"),
                             std::move(options));
  if (outcome && !succeeded(outcome)) {
    return detail::json_error(Errc::Status, *outcome,
                              "the status is " + std::to_string(outcome->status));
  }
  auto document = json_of(outcome);
  if (!document) return std::move(document).error();
  try {
    return document->template get<T>();
  } catch (const nlohmann::json::exception& error) {
    return detail::json_error(Errc::Protocol, *outcome,
                              std::string("the JSON has an unexpected form: ") + error.what());
  }
}

}  // namespace httpretry
