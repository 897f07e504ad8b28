// Stands in for libFuzzer where a fuzz target runs as an ordinary test: hands it no bytes, and then
// every file named on the command line or found in a directory named there.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;

void replay(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::vector<char> text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (!in) throw std::runtime_error("cannot read " + file.string());
  // Exactly as long as the input, so that a read past its end is seen.
  const std::vector<std::uint8_t> bytes(text.begin(), text.end());
  // Said first: a crash must not leave its reader guessing.
  std::printf("%s\n", file.c_str());
  std::fflush(stdout);
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

std::set<fs::path> files_of(const fs::path& path) {
  if (!fs::is_directory(path)) return {path};
  std::set<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(path)) {
    if (entry.is_regular_file()) files.insert(entry.path());
  }
  return files;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    LLVMFuzzerTestOneInput(nullptr, 0);
    for (int i = 1; i < argc; ++i) {
      for (const auto& file : files_of(argv[i])) replay(file);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
