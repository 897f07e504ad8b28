// The library's only macro. It marks the symbols that a shared library exports; all others are
// hidden. In a static library it has no effect.
#pragma once

#define HTTPRETRY_API __attribute__((visibility("default")))
