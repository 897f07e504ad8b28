// The lines of an input, in the pieces in which they are read.
#include "lib/extras/batch/line_source.hpp"

#include <httpretry/batch/store.hpp>

#include "tests/batch/folder.hpp"

#include <doctest/doctest.h>

#include <cerrno>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

using namespace httpretry::batch;

namespace {

std::vector<std::string> lines_of(const std::string& path) {
  LineSource source(path);
  CHECK(source.name() == path);
  CHECK(source.number() == 0);
  std::vector<std::string> lines;
  errno = EINTR;  // an old value, which means nothing
  while (const auto line = source.next()) {
    lines.emplace_back(*line);
    CHECK(source.number() == lines.size());
  }
  CHECK_FALSE(source.next().has_value());
  CHECK(source.number() == lines.size());
  return lines;
}

}  // namespace

TEST_CASE("a line has neither its line end nor a byte order mark") {
  const Folder folder;
  const std::string mark = "\xEF\xBB\xBF";
  const std::initializer_list<std::pair<std::string, std::vector<std::string>>> rows = {
      {"", {}},
      {"a", {"a"}},
      {"a\n", {"a"}},
      {"\n", {""}},
      {"a\n\nb", {"a", "", "b"}},
      {"a\r\n\r\nb\r", {"a", "", "b"}},
      {"\ra\r\r\n", {"\ra\r"}},
      {mark + "a\n" + mark + "b\n", {"a", "b"}},
      {"a" + mark + "\n", {"a" + mark}},
  };
  for (const auto& row : rows) {
    CAPTURE(row.first);
    CHECK(lines_of(folder.write("in", row.first)) == row.second);
  }
}

TEST_CASE("a line may be longer than the blocks in which it is read") {
  const Folder folder;
  constexpr std::size_t kBlockSize = 256 * 1024;
  for (const auto length : {kBlockSize - 1, kBlockSize, kBlockSize + 1, 3 * kBlockSize}) {
    CAPTURE(length);
    const std::vector<std::string> lines = {"first", std::string(length, 'x'), "third",
                                            std::string(length, 'y'), "last"};
    std::string text;
    for (const auto& line : lines) text += line + "\n";
    CHECK((lines_of(folder.write("in", text)) == lines));
  }
}

TEST_CASE("a line that is too long is an error that names it") {
  const Folder folder;
  const auto path = folder.write("in", "http://a/\n");
  std::filesystem::resize_file(path, std::size_t{130} * 1024 * 1024);  // without blocks on the disk
  LineSource source(path);
  CHECK(source.next().has_value());
  const auto message = path + ":2: the line is longer than 64 MiB";
  CHECK_THROWS_WITH_AS(source.next(), message.c_str(), StoreError);
}

TEST_CASE("an input that cannot be opened or read is an error with the cause") {
  const Folder folder;
  const auto missing = "cannot read " + (folder / "no") + ": No such file or directory";
  CHECK_THROWS_WITH_AS(LineSource(folder / "no"), missing.c_str(), StoreError);
  LineSource directory(folder / ".");
  const auto no_file = "cannot read " + (folder / ".") + ": Is a directory";
  CHECK_THROWS_WITH_AS(directory.next(), no_file.c_str(), StoreError);
}
