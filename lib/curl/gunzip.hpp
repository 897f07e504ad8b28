// Gunzip: decodes a gzip body as it arrives. libcurl could do it, but takes a gzip body that ends
// early, inside a correct Content-Length, for complete.
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
  // Stops where `into` returns false: Refused.
  using Sink = std::function<bool(std::string_view decoded)>;
  Status feed(std::string_view encoded, const Sink& into);
  // Whether every gzip member that began has ended.
  [[nodiscard]] bool complete() const { return !inside_; }

 private:
  std::unique_ptr<z_stream_s> stream_;
  bool inside_ = false;
};

}  // namespace httpretry
