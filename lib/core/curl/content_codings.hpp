// The content codings of a client: gzip, and those in TransportOptions::content_codings.
#pragma once

#include <httpretry/curl/transport_options.hpp>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace httpretry {

// Returns the coding, or nullptr if the client does not support it. "x-gzip" is gzip.
const ContentCoding* find_coding(std::string_view name, const std::vector<ContentCoding>& more);
// Returns "gzip, br, zstd": gzip and the names of `more`.
std::string names_of_codings(const std::vector<ContentCoding>& more);
// Returns the request with its body encoded by RequestOptions::compress_with, and with
// Content-Encoding. Returns the request unchanged if it has no body or
// headers that describe the bytes of the body. Returns Errc::InvalidRequest for an unknown coding.
Result<Request> encoded(const Request& request, const std::vector<ContentCoding>& more);

// Runs a coder, which may be a user's. A coder that breaks its promises is Corrupt from then on.
class CheckedCoder {
 public:
  explicit CheckedCoder(std::unique_ptr<ContentCoder> coder) : coder_(std::move(coder)) {
    if (coder_ == nullptr) problem_ = "has made no coder";
  }

  ContentCoder::Step run(std::string_view& in, std::span<char> out, bool last) {
    constexpr int kMostIdleSteps = 16;
    if (problem_ != nullptr) return {0, ContentCoder::State::Corrupt};
    const auto size = in.size();
    const auto step = coder_->run(in, out, last);
    idle_steps_ = step.written > 0 || in.size() < size ? 0 : idle_steps_ + 1;
    if (step.written > out.size()) problem_ = "reports more bytes than it had room for";
    if (idle_steps_ == kMostIdleSteps) problem_ = "neither reads nor writes";
    return problem_ == nullptr ? step : ContentCoder::Step{0, ContentCoder::State::Corrupt};
  }
  // Returns what is wrong with the coder, as in "has made no coder", or nullptr.
  [[nodiscard]] const char* problem() const { return problem_; }

 private:
  std::unique_ptr<ContentCoder> coder_;
  const char* problem_ = nullptr;
  int idle_steps_ = 0;  // in a row
};

}  // namespace httpretry
