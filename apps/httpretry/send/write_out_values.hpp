// The variables of -w: curl's, and ours.
#pragma once

#include "send/write_out.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace httpretry::cli {

enum class Kind : std::uint8_t { Text, Number, Certificates, Json };

struct WriteOutVariable {
  std::string_view name;
  Kind kind;
  std::string (*text)(const Transferred&);
  bool of_connection = false;  // needs Transferred::connections
};

// Null if there is no such variable.
const WriteOutVariable* write_out_variable(std::string_view name);

const Headers& headers_of(const Transferred& t);
// The first value; empty if there is none.
std::string header(const Headers& headers, std::string_view name);

}  // namespace httpretry::cli
