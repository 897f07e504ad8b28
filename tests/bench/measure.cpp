#include "measure.hpp"

#include <malloc.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <thread>

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_ZERO_STATS
#define CALLGRIND_DUMP_STATS
#endif

namespace {

std::atomic<std::uint64_t> allocations = 0;
std::atomic<std::uint64_t> allocated_bytes = 0;

void count(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  allocated_bytes.fetch_add(size, std::memory_order_relaxed);
}

}  // namespace

// Stand before glibc's own for every library of the process, libcurl among them.
extern "C" {
void* __libc_malloc(std::size_t size);                 // NOLINT
void* __libc_calloc(std::size_t n, std::size_t size);  // NOLINT
void* __libc_realloc(void* old, std::size_t size);     // NOLINT

void* malloc(std::size_t size) {
  count(size);
  return __libc_malloc(size);
}
void* calloc(std::size_t n, std::size_t size) {
  count(n * size);
  return __libc_calloc(n, size);
}
void* realloc(void* old, std::size_t size) {
  count(size);
  return __libc_realloc(old, size);
}
}

namespace bench {

Server::Server() {
  if (const char* url = std::getenv("BENCH_URL")) plain_ = url;
  std::array<int, 2> pipe{};
  demand(::pipe(pipe.data()) == 0, "pipe");
  child_ = ::fork();
  demand(child_ >= 0, "fork");
  if (child_ == 0) {
    ::dup2(pipe[1], STDOUT_FILENO);
    ::close(pipe[0]);
    ::close(pipe[1]);
    ::execl(BENCH_SERVER, BENCH_SERVER, nullptr);
    ::_exit(1);
  }
  ::close(pipe[1]);
  std::FILE* said = ::fdopen(pipe[0], "r");
  demand(said != nullptr && std::fscanf(said, "%d", &port_) == 1, "the server did not start");
  std::fclose(said);
}

Server::~Server() {
  ::kill(child_, SIGTERM);
  ::waitpid(child_, nullptr, 0);
}

std::string Server::url(const std::string& path) const {
  if (path == "/" && !plain_.empty()) return plain_;
  return "http://127.0.0.1:" + std::to_string(port_) + path;
}

double Server::cpu_us() const {
  clockid_t clock = 0;
  timespec time{};
  demand(::clock_getcpuclockid(child_, &clock) == 0, "no clock of the server");
  demand(::clock_gettime(clock, &time) == 0, "no time of the server");
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

long raise_file_limit() {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  return static_cast<long>(files.rlim_cur);
}

namespace {

rusage used() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage;
}

double cpu_us(const rusage& usage) {
  const auto us = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_usec);
  };
  return us(usage.ru_utime) + us(usage.ru_stime);
}

}  // namespace

Spent spent_in(const std::function<void()>& work) {
  using clock = std::chrono::steady_clock;
  const auto before = used();
  const auto count = allocations.load();
  const auto bytes = allocated_bytes.load();
  const auto begin = clock::now();
  CALLGRIND_ZERO_STATS;
  work();
  CALLGRIND_DUMP_STATS;
  Spent spent;
  spent.wall_us = std::chrono::duration<double, std::micro>(clock::now() - begin).count();
  const auto after = used();
  spent.cpu_us = cpu_us(after) - cpu_us(before);
  spent.waits = static_cast<double>(after.ru_nvcsw - before.ru_nvcsw);
  spent.allocations = allocations.load() - count;
  spent.allocated_bytes = allocated_bytes.load() - bytes;
  return spent;
}

void let_rest() { std::this_thread::sleep_for(std::chrono::milliseconds(100)); }

std::size_t heap_bytes() {
  const auto about = ::mallinfo2();
  return about.uordblks + about.hblkhd;
}

std::size_t resident_bytes() {
  std::ifstream about("/proc/self/statm");
  std::size_t total = 0;
  std::size_t resident = 0;
  about >> total >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

void demand(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "bench: %s\n", what);
  std::exit(1);
}

}  // namespace bench
