// Keeps a core's caches busy until it is killed: writes to one word of each cache line of 32 MiB,
// again and again.
#include <cstddef>
#include <vector>

int main() {
  constexpr std::size_t kCacheLine = 64;
  std::vector<char> memory(std::size_t{32} << 20);
  volatile char* const begin = memory.data();
  for (std::size_t at = 0;; at = (at + kCacheLine) % memory.size())
    begin[at] = static_cast<char>(begin[at] + 1);
}
