// Memory for coroutine frames, from free lists of each thread.
#include <httpretry/flow/task.hpp>

#include <array>
#include <new>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#define HTTPRETRY_POOL_FRAMES 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HTTPRETRY_POOL_FRAMES 0
#endif
#endif
#ifndef HTTPRETRY_POOL_FRAMES
#define HTTPRETRY_POOL_FRAMES 1
#endif

namespace httpretry::detail {
namespace {

constexpr std::size_t kGrain = 16;     // the alignment of malloc
constexpr std::size_t kClasses = 128;  // frames of up to 2 KiB: larger ones are rare
// At most 256 frames of a size are kept, so that a burst of calls does not hold memory for ever.
constexpr std::size_t kKeptPerClass = 256;

struct FreeList {
  struct Node {
    Node* next;
  };
  Node* first = nullptr;
  std::size_t room = 0;  // for further frames; none before `open`, nor at the end of the thread
};

// Plain values, because they can still be read when the thread's objects are destroyed: frames that
// are freed after that are simply deleted. With one test for taking a frame and one for giving it
// back, both together take 43 instructions.
thread_local constinit std::array<FreeList, kClasses> free_lists{};

struct Open {
  Open() {
    for (auto& list : free_lists) list.room = kKeptPerClass;
  }
  ~Open() {
    for (auto& list : free_lists) {
      list.room = 0;
      while (list.first != nullptr) {
        ::operator delete(std::exchange(list.first, list.first->next));
      }
    }
  }
};

// When the thread frees its first frame. With AddressSanitizer never: every frame is really freed,
// so that it finds a use after that.
void open() {
  if constexpr (HTTPRETRY_POOL_FRAMES != 0) thread_local const Open until_end_of_thread;
}

constexpr std::size_t class_of(std::size_t size) { return (size - 1) / kGrain; }

void keep(void* frame, FreeList& list) noexcept {
  --list.room;
  list.first = ::new (frame) FreeList::Node{list.first};
}

[[gnu::noinline]] void keep_first(void* frame, FreeList& list) noexcept {
  open();
  if (list.room == 0) return ::operator delete(frame);
  keep(frame, list);
}

}  // namespace

void* allocate_frame(std::size_t size) {
  const auto index = class_of(size);
  if (index < kClasses && free_lists[index].first != nullptr) [[likely]] {
    auto& list = free_lists[index];
    ++list.room;
    return std::exchange(list.first, list.first->next);
  }
  return ::operator new((index + 1) * kGrain);
}

void free_frame(void* frame, std::size_t size) noexcept {
  const auto index = class_of(size);
  if (index >= kClasses) return ::operator delete(frame);
  auto& list = free_lists[index];
  if (list.room == 0) [[unlikely]]
    return keep_first(frame, list);
  keep(frame, list);
}

}  // namespace httpretry::detail
