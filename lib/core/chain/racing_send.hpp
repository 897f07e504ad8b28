// RacingSend: one of several sends of one attempt, of which one response is used. Whoever carries
// it out tells how far it is, and asks whether its response is that one.
#pragma once

#include <httpretry/http/response.hpp>

#include <cstdint>

namespace httpretry {

class SendGate;

class RacingSend {
 public:
  // Whether the response is used. Yes: the other sends were canceled, and only this one may touch
  // the sink. NotYet: that depends on its body. No: it is kept in memory.
  enum class Use : std::uint8_t { Yes, NotYet, No };

  RacingSend() = default;
  virtual ~RacingSend() = default;
  RacingSend(const RacingSend&) = delete;
  RacingSend& operator=(const RacingSend&) = delete;

  // A hedge waits for nothing, and uses no connection that others use, too.
  [[nodiscard]] virtual bool is_hedge() const = 0;
  // It passes this, which may hold back others that follow.
  virtual void passes(SendGate& gate) = 0;
  virtual void begins() = 0;    // the transport carries it out from now on
  virtual void waits() = 0;     // after all, for a gate
  virtual void admitted() = 0;  // now it begins
  // The final headers have come.
  virtual Use headers_came(const Response& head) = 0;
  // After NotYet: so much of the body has come that it can be judged.
  virtual bool uses(const Response& begun) = 0;
};

}  // namespace httpretry
