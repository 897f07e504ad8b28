// Decodes a gzip body as it arrives. Ours and not libcurl's, which hands on a body that ends early
// inside its own Content-Length and calls it whole.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>

struct z_stream_s;

namespace httpretry {

class Gunzip {
 public:
  Gunzip();
  ~Gunzip();
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;

  enum class Status { Ok, Corrupt, Refused };
  // Takes `into` false as an answer to stop: the reader has enough.
  using Sink = std::function<bool(std::string_view decoded)>;
  Status feed(std::string_view encoded, const Sink& into);
  // Whether all that was fed is whole: every member that began has ended.
  [[nodiscard]] bool complete() const { return !inside_; }

 private:
  std::unique_ptr<z_stream_s> stream_;
  bool inside_ = false;
};

}  // namespace httpretry
