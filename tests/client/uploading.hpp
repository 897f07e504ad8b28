// A resumable upload in virtual time, to a server whose responses and connections fail as a test
// says.
#pragma once

#include "conversation.hpp"
#include "upload_model.hpp"

#include <httpretry/client/resumable_upload.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace httpretry {

inline const std::string kStart = "https://x/upload?uploadType=resumable";
inline const std::string kSession = "https://x/upload?session=7";

inline Response new_session(const std::string& location = "/upload?session=7") {
  Response response(200);
  response.headers.add("Location", location);
  return response;
}

inline RetryPolicy attempts(int most) {
  RetryPolicy policy;
  policy.max_attempts = most;
  policy.max_elapsed_time = std::chrono::hours(10);
  policy.budget.kind = BudgetPolicy::Kind::None;
  return policy;
}

// What becomes of one PUT.
struct Fate {
  std::size_t taken = SIZE_MAX;    // bytes of its body that the server gets
  std::optional<Outcome> instead;  // of the server's response
};
inline const Fate kGood{};
inline Fate lost_after(std::size_t taken) { return {taken, Outcome(error_of(Errc::Receive))}; }
inline Fate busy(std::size_t taken = 0) { return {taken, Outcome(Response(503))}; }

struct Uploading {
  Conversation talk;
  UploadModel server;
  ResumableUploadOptions options;
  Duration takes{};  // each request
  std::function<Fate(const Request&)> fate = [](const Request&) { return kGood; };

  // A list of fates; then all is good.
  void will(std::vector<Fate> fates) {
    fate = [fates = std::move(fates), next = std::size_t{0}](const Request&) mutable {
      return next < fates.size() ? fates[next++] : kGood;
    };
  }

  Outcome run(const std::string& content, std::vector<MiddlewarePtr> chain,
              Request start = Request::post(kStart, "{}")) {
    talk.network->say(
        [this](const Request& request, int) -> Outcome {
          if (request.method() != "PUT") return new_session();
          auto now = fate(request);
          const auto body = request.body().bytes()->substr(0, now.taken);
          auto response = server.put(request.headers()["Content-Range"], body);
          return now.instead ? *now.instead : Outcome(response);
        },
        takes);
    auto client = talk.client(std::move(chain));
    return talk.clock->run(
        co_upload_resumable(client, std::move(start), UploadContent::bytes(content), options));
  }

  [[nodiscard]] std::vector<std::string> ranges() const {
    std::vector<std::string> all;
    for (const auto& seen : talk.network->requests()) {
      if (const auto range = seen.request.headers().get("Content-Range")) all.emplace_back(*range);
    }
    return all;
  }
};

inline Error failure_of(const Outcome& outcome) {
  REQUIRE_FALSE(outcome);
  return outcome.error();
}

}  // namespace httpretry
