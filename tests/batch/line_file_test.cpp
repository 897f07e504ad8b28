// The bytes behind the committed ones of a file of lines.
#include "lib/extras/batch/line_file.hpp"

#include <httpretry/batch/store.hpp>

#include "tests/batch/folder.hpp"

#include <doctest/doctest.h>

#include <cerrno>
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
      errno = EINTR;  // an old value, which means nothing
      const auto lines = file.uncommitted_lines();
      CHECK(lines == row.lines);
    } else {
      CHECK_THROWS_AS(static_cast<void>(file.uncommitted_lines()), StoreError);
    }
  }
}

TEST_CASE("lines are written behind the committed ones, and replace what is there") {
  const Folder folder;
  LineFile file(folder / "lines", 0);
  CHECK(file.is_open());
  for (const bool sync : {false, true}) {
    errno = EINTR;  // an old value, which means nothing
    file.write("{1}\n{2}\n", sync);
    CHECK(folder.read("lines") == "{1}\n{2}\n");
    file.write("{3}\n", sync);
    CHECK(folder.read("lines") == "{3}\n");
    file.cut();
    CHECK(folder.read("lines").empty());
  }
  file.write("{1}\n", false);
  file.count_as_committed(4);
  CHECK(file.length() == 4);
  file.write("{2}\n", true);
  CHECK(folder.read("lines") == "{1}\n{2}\n");
  file.cut();
  CHECK(folder.read("lines") == "{1}\n");
  CHECK_NOTHROW(LineFile().cut());
}

TEST_CASE("a file that is shorter than its committed bytes is refused with both lengths") {
  const Folder folder;
  folder.append("lines", "{1}\n");
  CHECK_NOTHROW(LineFile(folder / "lines", 4));
  const auto message = (folder / "lines") +
                       " has 4 bytes, but the journal has written 5 to it: it was truncated. Put "
                       "it back as it was, or start over with --fresh";
  CHECK_THROWS_WITH_AS(LineFile(folder / "lines", 5), message.c_str(), StoreError);
}
