# What every target of ours is compiled with; warnings are errors where HTTPRETRY_WERROR is on (CI).
option(HTTPRETRY_WERROR "Treat warnings as errors" OFF)

function(httpretry_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wconversion -Wshadow
                                           $<$<BOOL:${HTTPRETRY_WERROR}>:-Werror>)
endfunction()
