// RacingSend: one of several sends of the same attempt, of which only one response is used. The
// stage that carries out the send reports its progress here, and learns whether to use the
// response.
#pragma once

#include <httpretry/http/response.hpp>

#include <cstdint>

namespace httpretry {

class SendGate;

class RacingSend {
 public:
  // Whether the response is used. Yes: the other sends were canceled, and only this one may touch
  // the sink. NotYet: the decision needs the body. No: the response is kept in memory.
  enum class Use : std::uint8_t { Yes, NotYet, No };

  RacingSend() = default;
  virtual ~RacingSend() = default;
  RacingSend(const RacingSend&) = delete;
  RacingSend& operator=(const RacingSend&) = delete;

  // Returns whether this send is a hedge, which never waits and shares no connection.
  [[nodiscard]] virtual bool is_hedge() const = 0;
  // Reports that the send goes through `gate`, which may hold back later sends.
  virtual void on_gate_reached(SendGate& gate) = 0;
  virtual void on_start() = 0;     // the transport starts it
  virtual void on_wait() = 0;      // a gate makes it wait
  virtual void on_admitted() = 0;  // a gate has let it pass
  // Reports the final headers.
  virtual Use headers_came(const Response& head) = 0;
  // Called after NotYet, when enough of the body has arrived to judge the response. Returns whether
  // it is used.
  virtual bool uses(const Response& begun) = 0;
};

}  // namespace httpretry
