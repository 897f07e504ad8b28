// Prints the schema on the first line, and then each case that a schema can judge: "good" or "bad",
// a space, and the text of a file.
#include "tests/policy/policy_cases.hpp"

#include <algorithm>
#include <iostream>
#include <string>

using namespace httpretry;

namespace {

void print(const cases::Case& one, std::string file) {
  if (!one.schema_sees) return;
  std::replace(file.begin(), file.end(), '\n', ' ');
  std::cout << (one.problem.empty() ? "good " : "bad ") << file << "\n";
}

}  // namespace

int main() {
  std::string schema(policy_schema());
  std::replace(schema.begin(), schema.end(), '\n', ' ');
  std::cout << schema << "\n";
  for (const auto& one : cases::files()) print(one, std::string(one.text));
  for (const auto& one : cases::policies()) print(one, cases::file_of(one.text));
  for (const auto& one : cases::tests()) print(one, cases::file_with_test(one.text));
  std::string printed = PolicySet().print();
  print({printed, ""}, printed);
}
