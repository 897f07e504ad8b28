// The implementation of a Body.
#pragma once

#include <httpretry/http/body.hpp>

namespace httpretry {

// Bytes in memory, or something that can be opened.
struct Body::Source {
  explicit Source(std::string all) : bytes(std::move(all)) {}
  explicit Source(Opener opener, std::function<bool()> check = nullptr)
      : open(std::move(opener)), replayable(std::move(check)) {}

  std::optional<std::string> bytes;
  Opener open;
  std::function<bool()> replayable;  // empty: always
};

}  // namespace httpretry
