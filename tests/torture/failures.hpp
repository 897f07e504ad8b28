// What a process asks of its surroundings, and how to have the k-th time fail: memory (of C++ and
// of libcurl), sockets, threads, descriptors, libcurl's handles. The functions themselves are
// replaced, in this program only.
#pragma once

#include <array>
#include <string_view>

namespace httpretry::torture {

enum class Resource {
  Memory,      // operator new
  CurlMemory,  // malloc and its like, in libcurl
  Socket,
  AddHandle,  // curl_multi_add_handle
  EasyInit,   // curl_easy_init
  MultiInit,  // curl_multi_init
  ShareInit,  // curl_share_init
  Thread,     // pthread_create
  Epoll,      // epoll_create1
  EpollCtl,   // epoll_ctl
  EventFd,    // eventfd
};
inline constexpr std::array<std::string_view, 11> kNames{
    "memory",     "curl-memory", "socket", "add-handle", "easy-init", "multi-init",
    "share-init", "thread",      "epoll",  "epoll-ctl",  "eventfd"};

// Before anything uses libcurl.
void replace_curls_memory();

// From now on: the k-th request for it fails, the others do not. 0: none fails.
void fail_at(Resource resource, long k);
// How often it was asked for since then.
[[nodiscard]] long asked(Resource resource);
// None fails any more, and none is counted.
void no_failures();

// Blocks of memory, of both kinds, that are not given back.
[[nodiscard]] long blocks_in_use();

}  // namespace httpretry::torture
