// Policies and policy files, with what is said of them: good ones and bad ones, a row each.
#pragma once

#include <httpretry/policy/policy_set.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace httpretry::cases {

struct Case {
  std::string_view text;     // of a policy, or of a file
  std::string_view problem;  // part of the one line; empty where it is good
  bool schema_sees = true;   // whether a schema can tell, too
};

const std::vector<Case>& policies();
const std::vector<Case>& files();
const std::vector<Case>& tests();  // the objects under "tests"

// The file whose default is that policy, which begins at line 1, column 27.
std::string file_of(std::string_view policy);
// The file with that test, which begins at line 1, column 26, and an entry "api" for the host "a".
std::string file_with_test(std::string_view test);

// All problems, a line each, except the warnings of risks (risks_test.cpp).
std::string said_of(std::string_view file);

}  // namespace httpretry::cases
