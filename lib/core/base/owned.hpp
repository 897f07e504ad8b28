// Owned: a pointer to an object of a C library, with the function that frees it.
#pragma once

#include <memory>

namespace httpretry {

template <auto free>
struct FreeWith {
  template <class T>
  void operator()(T* made) const {
    free(made);
  }
};
template <class T, auto free>
using Owned = std::unique_ptr<T, FreeWith<free>>;

}  // namespace httpretry
