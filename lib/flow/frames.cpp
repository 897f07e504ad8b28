// Memory for coroutine frames, from free lists of each thread.
#include <httpretry/flow/task.hpp>

#include <array>
#include <new>

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
  std::size_t count = 0;
  void* pop() noexcept {
    --count;
    return std::exchange(first, first->next);
  }
};

// Plain values, because they can still be read when the thread's objects are destroyed: frames that
// are freed after that are simply deleted.
thread_local std::array<FreeList, kClasses> free_lists;
thread_local bool thread_ends = false;

struct Cleanup {
  ~Cleanup() {
    thread_ends = true;
    for (auto& list : free_lists) {
      while (list.first != nullptr) ::operator delete(list.pop());
    }
  }
};

constexpr std::size_t class_of(std::size_t size) { return (size - 1) / kGrain; }

// With AddressSanitizer every frame is really freed, so that it finds a use after that.
FreeList* list_of(std::size_t index) {
  thread_local const Cleanup at_end_of_thread;
  const bool pooled = HTTPRETRY_POOL_FRAMES != 0 && index < kClasses && !thread_ends;
  return pooled ? &free_lists[index] : nullptr;
}

}  // namespace

void* allocate_frame(std::size_t size) {
  const auto index = class_of(size);
  auto* list = list_of(index);
  if (list != nullptr && list->first != nullptr) return list->pop();
  return ::operator new((index + 1) * kGrain);
}

void free_frame(void* frame, std::size_t size) noexcept {
  auto* list = list_of(class_of(size));
  if (list == nullptr || list->count == kKeptPerClass) return ::operator delete(frame);
  list->first = ::new (frame) FreeList::Node{list->first};
  ++list->count;
}

}  // namespace httpretry::detail
