// The bytes behind the committed ones of a file of lines.
#include "lib/extras/batch/line_file.hpp"

#include <httpretry/batch/store.hpp>

#include "tests/batch/folder.hpp"

#include <doctest/doctest.h>

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

using namespace httpretry::batch;  // NOLINT

TEST_CASE("whole lines behind the committed bytes are read, and a partial one is left out") {
  using Lines = std::vector<std::pair<std::uint64_t, std::string>>;
  const std::string nul(1, '\0');
  struct Row {
    std::string text;
    std::uint64_t committed;
    Lines lines;
    bool is_ours = true;
  };
  for (const auto& row : std::initializer_list<Row>{
           {"", 0, {}},
           {"{", 0, {}},
           {"{\"id\"", 0, {}},
           {nul + nul, 0, {}},
           {"x", 0, {}, false},
           {" {", 0, {}, false},
           {"\n", 0, {{0, ""}}},
           {"{}\n", 0, {{0, "{}"}}},
           {"{}\n{1}\n{", 0, {{0, "{}"}, {3, "{1}"}}},
           {"{}\nx", 0, {{0, "{}"}}},
           {"{}\n", 3, {}},
           {"{}\nx", 3, {}},
           {"{}\n{1}\n{", 3, {{3, "{1}"}}},
       }) {
    CAPTURE(row.text);
    CAPTURE(row.committed);
    const Folder folder;
    folder.append("lines", row.text);
    const LineFile file(folder / "lines", row.committed);
    if (row.is_ours) {
      CHECK(file.uncommitted_lines() == row.lines);
    } else {
      CHECK_THROWS_AS(static_cast<void>(file.uncommitted_lines()), StoreError);
    }
  }
}
