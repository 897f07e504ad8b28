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

// At most 256 frames of a size are kept, so that a burst of calls does not hold memory for ever.
constexpr std::size_t kKeptPerList = 256;

struct FreeList {
  struct Node {
    Node* next;
  };
  Node* first = nullptr;
  std::size_t room = 0;  // for further frames; none before `open`, nor at the end of the thread
};

// Plain values, because they can still be read when the thread's objects are destroyed: frames that
// are freed after that are simply deleted. With one test for taking a frame and one for giving it
// back, both together take 37 instructions.
thread_local constinit std::array<FreeList, kFrameLists> free_lists{};

struct Open {
  Open() {
    for (auto& list : free_lists) list.room = kKeptPerList;
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

void* allocate_from(std::size_t list) {
  auto& frames = free_lists[list];
  if (frames.first == nullptr) [[unlikely]]
    return ::operator new((list + 1) * kFrameStep - kOwnOfMalloc);
  ++frames.room;
  return std::exchange(frames.first, frames.first->next);
}

void free_to(std::size_t list, void* frame) noexcept {
  auto& frames = free_lists[list];
  if (frames.room == 0) [[unlikely]]
    return keep_first(frame, frames);
  keep(frame, frames);
}

}  // namespace httpretry::detail
