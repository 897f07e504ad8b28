// BodyOutput: shows the body of a response on standard output, or writes it to a pipe.
#pragma once

#include "cli/output.hpp"
#include "send/options.hpp"

#include <httpretry/http/response.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace httpretry::cli {

class BodyOutput {
 public:
  // For the URL at `index`. `target`: "-" or the name of a stream; it is opened for the first
  // bytes, and `limit` ends the wait for that. `cancel` ends a wait for its reader, as in
  // write_all.
  BodyOutput(const SendOptions& options, std::size_t index, std::string target,
             const WaitLimit& limit, int cancel);

  // Text that is shown before the first bytes of the body.
  void put_before(std::string head) { head_ = std::move(head); }
  // Throws WriteError, also for bytes that would disturb a terminal.
  void write(std::string_view bytes);
  // There are no more bytes.
  void finish();

  [[nodiscard]] std::uint64_t written() const { return written_; }  // of the body
  [[nodiscard]] const WaitLimit& limit() const { return limit_; }

 private:
  const Stream& stream();

  std::string target_;
  const WaitLimit& limit_;
  std::optional<Stream> stream_;
  std::string head_;
  int cancel_;
  bool checks_;
  std::uint64_t written_ = 0;
};

}  // namespace httpretry::cli
