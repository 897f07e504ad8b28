// Every public header includes this one first. It checks the language, and defines the library's
// only macro, which marks the symbols that a shared library exports. All others are hidden. In a
// static library the macro has no effect.
#pragma once

#if __cplusplus < 202002L
#error "httpretry needs C++20: compile with -std=c++20"
#endif

#define HTTPRETRY_API __attribute__((visibility("default")))
