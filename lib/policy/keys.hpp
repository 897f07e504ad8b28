// The keys of a policy file: one table, from which everything that knows them is driven: reading,
// what is suggested for a misspelt one, where a value came from, printing, the JSON Schema.
#pragma once

#include "lib/json/problems.hpp"

#include <httpretry/retry/retry_policy.hpp>

#include <cstdint>
#include <span>
#include <string_view>

namespace httpretry::policy_file {

// What a value looks like, and what it becomes.
enum class Form : std::uint8_t {
  Duration,      // Duration
  Limit,         // Duration; "none" is kForever
  Attempts,      // optional<int>; "unlimited" is empty
  Count,         // int
  Number,        // double
  Thousandths,   // int64_t
  Flag,          // bool
  Word,          // an enum of bytes, whose values are the numbers of the words
  Statuses,      // StatusSet
  ErrorCodes,    // vector<ErrorRule>
  Transports,    // a bit for each TransportKind
  Hints,         // vector<HintSource>
  Values,        // vector<string>, of what may stand in a body or a header
  Header,        // string
  Pointer,       // string
  Element,       // string
  Object,        // what the shape describes
  ObjectOrNone,  // likewise; "none" is its absence
  Text,          // optional<string>, not empty
  Port,          // optional<uint16_t>
  Methods,       // vector<string>
  // Those are no values of a policy: lib/policy/file.cpp reads them.
  Name,
  Version,
  Policy,     // an object
  PolicyRef,  // a name, or an object
  Policies,   // an object of objects
  Endpoints,  // an array of objects
  Match,      // an object
};

struct Shape;

using Words = std::span<const std::string_view>;
using Mask = std::uint32_t;
inline constexpr Mask kAll = ~Mask{0};

struct Key {
  std::string_view name;
  Form form = Form::Name;
  // Its place in the struct that the object describes. For an object: a new one is put there.
  void* (*field)(void*) = nullptr;
  // For an object that need not be there: it, or nullptr.
  void* (*existing)(void*) = nullptr;
  std::string_view fallback = {};  // JSON of the value where it is left out; empty: there is none
  Words words = {};
  double least = 0;
  double most = 0;
  const Shape* shape = nullptr;
  Mask kinds = kAll;            // to which it belongs
  Mask jitters = kAll;          // likewise
  Mask required = 0;            // the kinds that need it
  bool block = false;           // a preset replaces it even where it does not state it
  bool nullable = true;         // null returns it to the value below
  std::string_view about = {};  // for people who read the schema
};

struct Shape {
  std::string_view name;  // in the schema
  std::span<const Key> keys;
  Words kinds = {};    // of the key "kind"; empty where there is none
  Words jitters = {};  // likewise
  // An object of which only a part is good is looked at no further.
  bool whole = false;
  std::string_view base = {};  // JSON that lies below it where there is nothing else

  [[nodiscard]] const Key* find(std::string_view name) const;
};

const Shape& file_shape();
const Shape& endpoint_shape();
const Shape& match_shape();
const Shape& policy_shape();
const Shape& rule_shape();  // of the objects in retry_on.error_codes

Words family_words();
Words transport_words();
Words hint_words();

}  // namespace httpretry::policy_file
