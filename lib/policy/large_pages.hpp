// An allocator for large arrays of which a few places far from each other are read.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <memory>

namespace httpretry::policy {

// Asks for large pages: a processor knows where some thousand pages are, and at 4 KiB each that is
// less than such an array. Where there are none, all works as well, only slower.
inline void ask_for_large_pages(void* data, std::size_t bytes) {
  constexpr std::uintptr_t kLargePage = 2U << 20U;
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  const auto first = (begin + kLargePage - 1) / kLargePage * kLargePage;
  const auto last = (begin + bytes) / kLargePage * kLargePage;
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
}

template <class T>
struct LargePages {
  using value_type = T;

  LargePages() = default;
  template <class U>
  LargePages(const LargePages<U>& /*other*/) noexcept {}

  T* allocate(std::size_t count) {
    auto* const data = std::allocator<T>().allocate(count);
    ask_for_large_pages(data, count * sizeof(T));
    return data;
  }
  void deallocate(T* data, std::size_t count) noexcept {
    std::allocator<T>().deallocate(data, count);
  }

  friend bool operator==(const LargePages& /*one*/, const LargePages& /*other*/) { return true; }
};

}  // namespace httpretry::policy
