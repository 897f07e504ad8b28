// The one macro of the library: marks what a shared build exports. Everything else is hidden.
#pragma once

#if defined(HTTPRETRY_STATIC)
#define HTTPRETRY_API
#else
#define HTTPRETRY_API __attribute__((visibility("default")))
#endif
