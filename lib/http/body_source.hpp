// The implementation of a Body.
#pragma once

#include <httpretry/http/body.hpp>

namespace httpretry {

class Body::Source {
 public:
  virtual ~Source() = default;
  [[nodiscard]] virtual bool replayable() const { return true; }
  [[nodiscard]] virtual const std::string* bytes() const { return nullptr; }
  virtual Result<std::unique_ptr<BodyReader>> open(const std::shared_ptr<Source>& self) = 0;
};

}  // namespace httpretry
