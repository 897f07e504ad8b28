// The policy files that the documentation and the examples show are good ones.
#include "tests/policy/policy_cases.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE_MESSAGE(file, path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The blocks of a page that are policy files.
std::vector<std::string> files_in(const std::string& page) {
  std::vector<std::string> files;
  for (auto begin = page.find("```json\n"); begin != page.npos;
       begin = page.find("```json\n", begin + 1)) {
    const auto start = begin + 8;
    auto block = page.substr(start, page.find("```", start) - start);
    if (block.find("\"version\"") != block.npos) files.push_back(std::move(block));
  }
  return files;
}

void check_example(const fs::path& where, const std::string& file) {
  CAPTURE(where);
  const auto problems = httpretry::check_policies(file, "p.json").problems;
  CHECK_MESSAGE(problems.empty(), to_string(problems.front()));
}

}  // namespace

TEST_CASE("the policy files of the documentation are good, and there are some") {
  const fs::path root(SOURCE_DIR);
  auto count = 0;
  for (const auto* const folder : {".", "lib", "lib/core/policy"}) {
    if (!fs::exists(root / folder)) continue;
    for (const auto& entry : fs::directory_iterator(root / folder)) {
      if (entry.path().extension() != ".md") continue;
      for (const auto& file : files_in(text_of(entry.path()))) {
        check_example(entry.path(), file);
        ++count;
      }
    }
  }
  CHECK(count >= 2);
}

TEST_CASE("the policy files of the examples are good") {
  auto count = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(SOURCE_DIR) / "apps" / "examples")) {
    if (entry.path().extension() != ".json") continue;
    check_example(entry.path(), text_of(entry.path()));
    ++count;
  }
  CHECK(count >= 1);
}
