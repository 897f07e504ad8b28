#include "failures.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <new>

namespace httpretry::failures {
namespace {

struct {
  bool counting = false;
  What what = What::Call;
  long at = 0;  // 0: nothing fails
  std::array<long, kNames.size()> asked{};
} failing;

bool fails(What what) {
  if (!failing.counting) return false;
  const auto number = ++failing.asked[static_cast<std::size_t>(what)];
  if (what != failing.what || failing.at == 0) return false;
  // A disk that is full stays full.
  return what == What::FullDisk ? number >= failing.at : number == failing.at;
}

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

int failed(int cause) {
  errno = cause;
  return -1;
}

// One that needs room on the disk fails in both ways.
bool call_fails(bool needs_room, int& cause) {
  cause = EIO;
  const bool call = fails(What::Call);
  if (call || !needs_room || !fails(What::FullDisk)) return call;
  cause = ENOSPC;
  return true;
}

void* sqlite_malloc(int size) {
  if (fails(What::SqliteMemory)) return nullptr;
  auto* const block = static_cast<std::size_t*>(std::malloc(static_cast<std::size_t>(size) + 16));
  if (block == nullptr) return nullptr;
  *block = static_cast<std::size_t>(size);
  return block + 2;
}
void sqlite_free(void* block) {
  if (block != nullptr) std::free(static_cast<std::size_t*>(block) - 2);
}
void* sqlite_realloc(void* old, int size) {
  if (fails(What::SqliteMemory)) return nullptr;
  auto* const block = static_cast<std::size_t*>(
      std::realloc(static_cast<std::size_t*>(old) - 2, static_cast<std::size_t>(size) + 16));
  if (block == nullptr) return nullptr;
  *block = static_cast<std::size_t>(size);
  return block + 2;
}
int sqlite_size(void* block) {
  return block == nullptr ? 0 : static_cast<int>(*(static_cast<std::size_t*>(block) - 2));
}
int sqlite_round(int size) { return (size + 7) & ~7; }
int sqlite_begin(void* /*data*/) { return SQLITE_OK; }
void sqlite_end(void* /*data*/) {}

}  // namespace

void replace_memory_of_sqlite() {
  static const sqlite3_mem_methods memory{sqlite_malloc, sqlite_free,  sqlite_realloc, sqlite_size,
                                          sqlite_round,  sqlite_begin, sqlite_end,     nullptr};
  if (sqlite3_config(SQLITE_CONFIG_MALLOC, &memory) != SQLITE_OK) std::abort();
}

void fail_at(What what, long k) { failing = {true, what, k, {}}; }
void no_failures() { failing.counting = false; }
long asked(What what) { return failing.asked[static_cast<std::size_t>(what)]; }

}  // namespace httpretry::failures

namespace failures = httpretry::failures;

void* operator new(std::size_t size) {
  void* const block =
      failures::fails(failures::What::Memory) ? nullptr : std::malloc(size == 0 ? 1 : size);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}
void* operator new(std::size_t size, const std::nothrow_t& /*tag*/) noexcept {
  return failures::fails(failures::What::Memory) ? nullptr : std::malloc(size == 0 ? 1 : size);
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t /*size*/) noexcept { std::free(block); }

extern "C" {

#define FAILING_OPEN(name)                                                                \
  int name(const char* path, int flags, ...) {                                            \
    static auto* const next = failures::real<int(const char*, int, ...)>(#name);          \
    std::va_list rest;                                                                    \
    va_start(rest, flags);                                                                \
    const auto mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : mode_t{0};          \
    va_end(rest);                                                                         \
    int cause = 0;                                                                        \
    return failures::call_fails((flags & O_CREAT) != 0, cause) ? failures::failed(cause)  \
                                                               : next(path, flags, mode); \
  }
FAILING_OPEN(open)
FAILING_OPEN(open64)

#define FAILING_CALL(name, room, result, parameters, arguments)                          \
  result name parameters noexcept(noexcept(::name arguments)) {                          \
    static auto* const next = failures::real<result parameters>(#name);                  \
    int cause = 0;                                                                       \
    return failures::call_fails(room, cause) ? failures::failed(cause) : next arguments; \
  }
FAILING_CALL(read, false, ssize_t, (int file, void* to, size_t count), (file, to, count))
FAILING_CALL(pread, false, ssize_t, (int file, void* to, size_t count, off_t at),
             (file, to, count, at))
FAILING_CALL(pread64, false, ssize_t, (int file, void* to, size_t count, off64_t at),
             (file, to, count, at))
FAILING_CALL(write, true, ssize_t, (int file, const void* from, size_t count), (file, from, count))
FAILING_CALL(pwrite, true, ssize_t, (int file, const void* from, size_t count, off_t at),
             (file, from, count, at))
FAILING_CALL(pwrite64, true, ssize_t, (int file, const void* from, size_t count, off64_t at),
             (file, from, count, at))
FAILING_CALL(fsync, false, int, (int file), (file))
FAILING_CALL(fdatasync, false, int, (int file), (file))
FAILING_CALL(ftruncate, false, int, (int file, off_t size), (file, size))
FAILING_CALL(ftruncate64, false, int, (int file, off64_t size), (file, size))
FAILING_CALL(rename, false, int, (const char* from, const char* to), (from, to))
FAILING_CALL(unlink, false, int, (const char* path), (path))
}
