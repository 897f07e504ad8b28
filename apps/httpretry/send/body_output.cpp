#include "send/body_output.hpp"

#include "send/targets.hpp"

#include <unistd.h>

namespace httpretry::cli {

BodyOutput::BodyOutput(const SendOptions& options, std::size_t index, std::string target,
                       const WaitLimit& limit, int cancel)
    : target_(std::move(target)),
      limit_(limit),
      cancel_(cancel),
      checks_(target_ == "-" && !names_stdout(options, index) && ::isatty(STDOUT_FILENO) == 1) {}

void BodyOutput::write(std::string_view bytes) {
  constexpr std::uint64_t kChecked = 2000;  // bytes at the beginning, as in curl
  const bool is_checked = checks_ && written_ < kChecked;
  const bool is_binary = bytes.substr(0, kChecked).find('\0') != std::string_view::npos;
  if (is_checked && is_binary) {
    throw WriteError(
        "the response is binary and may garble the terminal; -o FILE saves it, -o - shows it "
        "anyway");
  }
  const auto& out = stream();
  if (!head_.empty()) out.write(std::exchange(head_, {}));
  out.write(bytes);
  written_ += bytes.size();
}

// Opens the stream even for an empty body, because the reader of a pipe waits for a writer.
void BodyOutput::finish() { write({}); }

const Stream& BodyOutput::stream() {
  if (!stream_) {
    if (target_ == "-" && ::isatty(STDOUT_FILENO) == 1) pause_.emplace();
    stream_.emplace(target_, cancel_, &limit_);
  }
  return *stream_;
}

}  // namespace httpretry::cli
