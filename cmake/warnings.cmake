# The warnings for all our targets. They are errors if HTTPRETRY_WERROR is on (CI).
option(HTTPRETRY_WERROR "Treat warnings as errors" OFF)

# g++ 12 reports an overlap in every `"text" + std::string` (GCC bug 105651).
function(httpretry_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wconversion -Wshadow
                                           $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
                                           $<$<BOOL:${HTTPRETRY_WERROR}>:-Werror>)
endfunction()
