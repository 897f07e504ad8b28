// BodyOutput writes the body of a response to standard output or to a pipe.
#pragma once

#include "cli/message.hpp"
#include "cli/output.hpp"
#include "send/options.hpp"

#include <httpretry/http/response.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace httpretry::cli {

class BodyOutput {
 public:
  // Writes the response for the URL at `index` to `target`, which is "-" or the name of a stream.
  // It is opened for the first bytes; `limit` ends the wait for that. `cancel` ends a wait for its
  // reader, as in write_all.
  BodyOutput(const SendOptions& options, std::size_t index, std::string target,
             const WaitLimit& limit, int cancel);

  // Sets the text that is written before the first bytes of the body.
  void set_head(std::string head) { head_ = std::move(head); }
  // Throws WriteError, also for bytes that would disturb a terminal.
  void write(std::string_view bytes);
  // Ends the body. Opens the stream and writes the head even if the body is empty.
  void finish();

  [[nodiscard]] std::uint64_t written() const { return written_; }  // of the body
  [[nodiscard]] const WaitLimit& limit() const { return limit_; }

 private:
  const Stream& stream();

  std::string target_;
  const WaitLimit& limit_;
  std::optional<StatusPause> pause_;  // while the body is on a terminal
  std::optional<Stream> stream_;
  std::string head_;
  int cancel_;
  bool checks_;  // rejects binary bytes, which would disturb a terminal
  std::uint64_t written_ = 0;
};

}  // namespace httpretry::cli
