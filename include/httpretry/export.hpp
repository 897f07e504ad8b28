// The one macro of the library: marks what a shared build exports. Everything else is hidden. A
// static build has no use for it and takes no harm.
#pragma once

#define HTTPRETRY_API __attribute__((visibility("default")))
