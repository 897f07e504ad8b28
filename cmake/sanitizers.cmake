# Instrumented builds. Whatever is chosen here is used for the library, its tests and its programs
# alike: a sanitizer that sees half of a program reports nonsense.
set(HTTPRETRY_SANITIZE "" CACHE STRING
    "address (with undefined behaviour), thread, or fuzzer (clang; with address); empty for none")
set_property(CACHE HTTPRETRY_SANITIZE PROPERTY STRINGS "" address thread fuzzer)
option(HTTPRETRY_COVERAGE "Count which lines run (gcov)" OFF)

# Undefined behaviour ends the program: a report that only scrolls past fails no test.
# vptr opens a pipe to look at an object's type, and takes the object for broken where the process
# may open no more files, which is a thing we test; AddressSanitizer sees the dead objects itself.
set(sanitize_undefined -fsanitize=undefined -fno-sanitize=vptr -fno-sanitize-recover=all)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # clang 14 takes a call through a pointer to a coroutine's frame for one of the wrong type.
  list(APPEND sanitize_undefined -fno-sanitize=function)
endif()

if(HTTPRETRY_SANITIZE STREQUAL "")
  set(sanitize_options "")
elseif(HTTPRETRY_SANITIZE STREQUAL "address")
  set(sanitize_options -fsanitize=address ${sanitize_undefined})
elseif(HTTPRETRY_SANITIZE STREQUAL "thread")
  set(sanitize_options -fsanitize=thread)
elseif(HTTPRETRY_SANITIZE STREQUAL "fuzzer")
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "HTTPRETRY_SANITIZE=fuzzer needs clang: only it has libFuzzer.")
  endif()
  set(sanitize_options -fsanitize=fuzzer-no-link,address ${sanitize_undefined})
else()
  message(FATAL_ERROR "HTTPRETRY_SANITIZE is \"${HTTPRETRY_SANITIZE}\"; it may be address, thread, "
                      "fuzzer or empty.")
endif()

if(sanitize_options)
  add_compile_options(${sanitize_options} -fno-omit-frame-pointer)
  add_link_options(${sanitize_options})
endif()
if(HTTPRETRY_COVERAGE)
  add_compile_options(--coverage -fprofile-update=atomic)
  add_link_options(--coverage)
endif()
