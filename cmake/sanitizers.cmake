# Builds with sanitizers. The library, its tests and its programs all use the same one: a sanitizer
# that sees only half of a program reports wrong errors.
set(HTTPRETRY_SANITIZE "" CACHE STRING
    "address (with clang also undefined behavior), or thread; empty for none")
set_property(CACHE HTTPRETRY_SANITIZE PROPERTY STRINGS "" address thread)
option(HTTPRETRY_COVERAGE "Count which lines run (gcov)" OFF)

# Only with clang: it would make g++ compile half as long again. Undefined behavior ends the program, because a
# mere message would not make a test fail. Two of the checks are left out.
# vptr opens a pipe to check an object's type, and reports a broken object if the process may open no
# more files. Our tests do that on purpose. AddressSanitizer finds dead objects by itself.
# function reports, with clang 14, a call through a pointer to a coroutine frame as a call of the wrong type.
set(sanitize_undefined -fsanitize=undefined -fno-sanitize=vptr,function -fno-sanitize-recover=all)

if(HTTPRETRY_SANITIZE STREQUAL "")
  set(sanitize_options "")
elseif(HTTPRETRY_SANITIZE STREQUAL "address")
  set(sanitize_options -fsanitize=address)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    list(APPEND sanitize_options ${sanitize_undefined})
  endif()
elseif(HTTPRETRY_SANITIZE STREQUAL "thread")
  set(sanitize_options -fsanitize=thread)
else()
  message(FATAL_ERROR "HTTPRETRY_SANITIZE is \"${HTTPRETRY_SANITIZE}\"; it may be address, thread or empty.")
endif()

if(sanitize_options)
  add_compile_options(${sanitize_options} -fno-omit-frame-pointer)
  # Programs at a fixed address start in three quarters of the time: the tables of a sanitizer need hundreds of
  # thousands of relocations otherwise, and the tests start a few thousand programs.
  add_link_options(${sanitize_options} $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
endif()
if(HTTPRETRY_COVERAGE)
  add_compile_options(--coverage -fprofile-update=atomic)
  add_link_options(--coverage)
endif()

# httpretry_for_fuzzing(TARGET): makes the code count which of its branches run. libFuzzer, which only clang has, looks
# for inputs that run others.
function(httpretry_for_fuzzing target)
  if(HTTPRETRY_SANITIZE STREQUAL "address" AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()

# httpretry_optimize_a_little(TARGET ONLY TARGETS...): optimizes a library if it is one of TARGETS. The presets clang-asan
# and tsan compile the rest without optimizing, in half the time. But with clang's AddressSanitizer, tests that send
# megabytes through these libraries, or millions of calls, would then run for minutes.
function(httpretry_optimize_a_little target)
  if(HTTPRETRY_SANITIZE STREQUAL "address" AND CMAKE_CXX_COMPILER_ID MATCHES "Clang" AND target IN_LIST ARGN)
    target_compile_options(${target} PRIVATE -O1)
  endif()
endfunction()
