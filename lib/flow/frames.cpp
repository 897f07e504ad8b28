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

class FrameLists {
 public:
  ~FrameLists() {
    for (auto& list : lists_) {
      while (list.first != nullptr) ::operator delete(list.pop());
    }
  }
  void* take(std::size_t index) noexcept {
    return lists_[index].first == nullptr ? nullptr : lists_[index].pop();
  }
  bool keep(std::size_t index, void* frame) noexcept {
    auto& list = lists_[index];
    if (list.count == kKeptPerClass) return false;
    list.first = ::new (frame) Node{list.first};
    ++list.count;
    return true;
  }

 private:
  struct Node {
    Node* next;
  };
  struct List {
    Node* first = nullptr;
    std::size_t count = 0;
    void* pop() noexcept {
      Node* node = first;
      first = node->next;
      --count;
      return node;
    }
  };
  std::array<List, kClasses> lists_{};
};

// Plain values, because they can still be read when the thread's objects are destroyed: frames that
// are freed after that are simply deleted.
thread_local FrameLists* current_lists = nullptr;
thread_local bool thread_ends = false;

struct OwnLists {
  OwnLists() { current_lists = &lists; }
  ~OwnLists() {
    current_lists = nullptr;
    thread_ends = true;
  }
  FrameLists lists;
};

FrameLists* first_use() {
  if (thread_ends) return nullptr;
  thread_local const OwnLists own;
  return current_lists;
}

FrameLists* lists_of_this_thread() {
  return current_lists != nullptr ? current_lists : first_use();
}

constexpr std::size_t class_of(std::size_t size) { return (size - 1) / kGrain; }

}  // namespace

// With AddressSanitizer every frame is really freed, so that it finds a use after that.
void* allocate_frame(std::size_t size) {
  const auto index = class_of(size);
  if (HTTPRETRY_POOL_FRAMES != 0 && index < kClasses) {
    if (auto* lists = lists_of_this_thread(); lists != nullptr) {
      if (void* frame = lists->take(index); frame != nullptr) return frame;
    }
  }
  return ::operator new((index + 1) * kGrain);
}

void free_frame(void* frame, std::size_t size) noexcept {
  const auto index = class_of(size);
  if (HTTPRETRY_POOL_FRAMES != 0 && index < kClasses) {
    auto* lists = lists_of_this_thread();
    if (lists != nullptr && lists->keep(index, frame)) return;
  }
  ::operator delete(frame);
}

}  // namespace httpretry::detail
