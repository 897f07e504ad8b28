#include "failures.hpp"

#include <curl/curl.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

namespace httpretry::torture {
namespace {

std::array<std::atomic<long>, kNames.size()> counts{};
std::atomic<int> failing{-1};
std::atomic<long> failing_at{0};
std::atomic<bool> counting{false};
std::atomic<long> blocks{0};

bool fails(Resource resource) {
  if (!counting.load(std::memory_order_relaxed)) return false;
  const auto index = static_cast<std::size_t>(resource);
  const auto number = counts[index].fetch_add(1) + 1;
  return static_cast<int>(index) == failing && number == failing_at;
}

// As the C library does.
bool lacks_memory(Resource resource) {
  if (!fails(resource)) return false;
  errno = ENOMEM;
  return true;
}

void* allocate(Resource resource, std::size_t size) {
  if (lacks_memory(resource)) return nullptr;
  void* block = std::malloc(size == 0 ? 1 : size);
  if (block != nullptr) blocks.fetch_add(1, std::memory_order_relaxed);
  return block;
}

void release(void* block) {
  if (block != nullptr) blocks.fetch_sub(1, std::memory_order_relaxed);
  std::free(block);
}

void* curl_malloc(std::size_t size) { return allocate(Resource::CurlMemory, size); }
void* curl_calloc(std::size_t count, std::size_t size) {
  void* block = allocate(Resource::CurlMemory, count * size);
  if (block != nullptr) std::memset(block, 0, count * size);
  return block;
}
void* curl_realloc(void* old, std::size_t size) {
  if (old == nullptr) return curl_malloc(size);
  return lacks_memory(Resource::CurlMemory) ? nullptr : std::realloc(old, size);
}
char* curl_copy(const char* text) {
  const auto size = std::strlen(text) + 1;
  auto* copy = static_cast<char*>(curl_malloc(size));
  if (copy != nullptr) std::memcpy(copy, text, size);
  return copy;
}

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

int failed(int cause) {
  errno = cause;
  return -1;
}

}  // namespace

void replace_curls_memory() {
  curl_global_init_mem(CURL_GLOBAL_DEFAULT, &curl_malloc, &release, &curl_realloc, &curl_copy,
                       &curl_calloc);
}

void fail_at(Resource resource, long k) {
  for (auto& count : counts) count = 0;
  failing = static_cast<int>(resource);
  failing_at = k;
  counting = true;
}

long asked(Resource resource) { return counts[static_cast<std::size_t>(resource)]; }
void no_failures() { counting = false; }
long blocks_in_use() { return blocks; }

}  // namespace httpretry::torture

using httpretry::torture::Resource;
namespace torture = httpretry::torture;

void* operator new(std::size_t size) {
  void* block = torture::allocate(Resource::Memory, size);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}
void* operator new(std::size_t size, const std::nothrow_t& /*tag*/) noexcept {
  return torture::allocate(Resource::Memory, size);
}
void operator delete(void* block) noexcept { torture::release(block); }
void operator delete(void* block, std::size_t /*size*/) noexcept { torture::release(block); }
void operator delete(void* block, const std::nothrow_t& /*tag*/) noexcept {
  torture::release(block);
}

extern "C" {

int socket(int domain, int type, int protocol) noexcept {
  static auto* const next = torture::real<int(int, int, int)>("socket");
  return torture::fails(Resource::Socket) ? torture::failed(EMFILE) : next(domain, type, protocol);
}
int epoll_create1(int flags) noexcept {
  static auto* const next = torture::real<int(int)>("epoll_create1");
  return torture::fails(Resource::Epoll) ? torture::failed(EMFILE) : next(flags);
}
int epoll_ctl(int set, int what, int fd, epoll_event* event) noexcept {
  static auto* const next = torture::real<int(int, int, int, epoll_event*)>("epoll_ctl");
  return torture::fails(Resource::EpollCtl) ? torture::failed(ENOMEM) : next(set, what, fd, event);
}
int eventfd(unsigned int count, int flags) noexcept {
  static auto* const next = torture::real<int(unsigned int, int)>("eventfd");
  return torture::fails(Resource::EventFd) ? torture::failed(EMFILE) : next(count, flags);
}
int pthread_create(pthread_t* thread, const pthread_attr_t* how, void* (*run)(void*),
                   void* argument) noexcept {
  static auto* const next =
      torture::real<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>(
          "pthread_create");
  return torture::fails(Resource::Thread) ? EAGAIN : next(thread, how, run, argument);
}
CURLMcode curl_multi_add_handle(CURLM* multi, CURL* easy) {
  static auto* const next = torture::real<CURLMcode(CURLM*, CURL*)>("curl_multi_add_handle");
  return torture::fails(Resource::AddHandle) ? CURLM_OUT_OF_MEMORY : next(multi, easy);
}
CURL* curl_easy_init() {
  static auto* const next = torture::real<CURL*()>("curl_easy_init");
  return torture::fails(Resource::EasyInit) ? nullptr : next();
}
CURLM* curl_multi_init() {
  static auto* const next = torture::real<CURLM*()>("curl_multi_init");
  return torture::fails(Resource::MultiInit) ? nullptr : next();
}
CURLSH* curl_share_init() {
  static auto* const next = torture::real<CURLSH*()>("curl_share_init");
  return torture::fails(Resource::ShareInit) ? nullptr : next();
}

}  // extern "C"
