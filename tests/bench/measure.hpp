// What the programs here measure with. Each figure is for the whole process, all threads.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>

namespace bench {

// The server of server.cpp, in a child process. Where BENCH_URL says so, another one (nginx)
// answers the plain GETs, those of "/".
class Server {
 public:
  Server();
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  [[nodiscard]] std::string url(const std::string& path = "/") const;
  // So far; not of the one that BENCH_URL names.
  [[nodiscard]] double cpu_us() const;

 private:
  pid_t child_ = 0;
  int port_ = 0;
  std::string plain_;
};

// Raises the number of files that may be open as far as that goes, and says how far that is.
long raise_file_limit();

struct Spent {
  double cpu_us = 0;  // user and system
  double wall_us = 0;
  double waits = 0;               // of its threads, for something: each is a switch to another one
  std::uint64_t allocations = 0;  // malloc, calloc, realloc and what stands on them
  std::uint64_t allocated_bytes = 0;
};

// What `work` spends. Under callgrind the counters stand at zero when it begins and are written out
// when it ends: the instructions are its own.
Spent spent_in(const std::function<void()>& work);

// Lets the loops finish with the last response, and find that they have nothing to do.
void let_rest();

// Bytes that the heap has handed out, and that the process holds of the machine's memory.
std::size_t heap_bytes();
std::size_t resident_bytes();

// Ends the program with that text where `holds` is false: a figure of work that went wrong is none.
void demand(bool holds, const char* what);

}  // namespace bench
