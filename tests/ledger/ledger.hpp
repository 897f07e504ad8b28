// What the servers saw and what the client says that it sent, call by call, and whether the two
// agree. A few bytes a call, so that a million of them fit.
#pragma once

#include <httpretry/http/response.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace httpretry::ledger {

// What a call may do on the wire.
enum class Kind : std::uint8_t {
  Safe,    // may be sent again
  Unsafe,  // must not, but where the server says that it did nothing
  Keyed,   // may, with the same key and the same body
};

[[noreturn]] void fail(const std::string& text);

// A request as a server saw it.
struct Sight {
  std::string_view id;  // the field X-Call: "CALL.ATTEMPT"
  std::string_view key;
  std::uint64_t body_hash = 0;
  bool whole = false;    // the body came in full
  bool refused = false;  // the response says that nothing was done
  std::string_view target = {};
  std::string_view authorization = {};
  bool certificate = false;  // the client showed one
};

[[nodiscard]] std::uint64_t hash(std::string_view text);

// Of all calls. The client's side of a call is written by whoever drives it, the servers' by any.
class Ledger {
 public:
  explicit Ledger(std::size_t calls) : calls_(calls) {}
  [[nodiscard]] std::size_t size() const { return calls_.size(); }

  // The client's side. `attempt_begins` answers with the value of X-Call. Attempts count from 1.
  void call_begins(std::size_t call, Kind kind, std::string_view body);
  [[nodiscard]] std::string attempt_begins(std::size_t call, int attempt);
  void call_ends(std::size_t call, const Outcome& outcome);

  void server_saw(const Sight& sight);

  struct Totals {
    std::uint64_t calls = 0, sends = 0, answered = 0, seen = 0, lost = 0, unsent = 0, hedges = 0;
    std::array<std::uint64_t, 3> kinds{}, good{};  // calls of each kind; those with a 2xx
  };
  // When all calls have ended and the servers are gone: fails where the two sides differ.
  [[nodiscard]] Totals balance() const;

 private:
  // A bit for each attempt.
  using Attempts = std::uint16_t;
  struct Entry {
    std::uint64_t body_hash = 0;
    std::atomic<std::uint64_t> key_hash = 0;  // as the servers saw it
    std::atomic<Attempts> seen = 0;
    Attempts begun = 0;
    Attempts sent = 0;
    Attempts answered = 0;
    Attempts hedges = 0;
    Kind kind = Kind::Safe;
    bool good = false;
    std::atomic<std::uint8_t> ends = 0;
    std::atomic<bool> executed = false;
  };
  static Attempts bit_of(std::size_t call, int attempt);
  static void balance(std::size_t call, const Entry& entry);
  std::vector<Entry> calls_;
};

}  // namespace httpretry::ledger
