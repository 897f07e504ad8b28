# Compile through ccache if it is installed, but only as the top project: a program that uses us with
# add_subdirectory decides for itself.
if(PROJECT_IS_TOP_LEVEL AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER
   AND NOT DEFINED ENV{CMAKE_CXX_COMPILER_LAUNCHER})
  find_program(HTTPRETRY_CCACHE ccache)
  mark_as_advanced(HTTPRETRY_CCACHE)
  # The cached path may be out of date: the program may have been removed.
  if(HTTPRETRY_CCACHE AND EXISTS "${HTTPRETRY_CCACHE}")
    # CCACHE_SLOPPINESS lets it serve objects that were compiled with precompiled headers. CCACHE_DEPEND lets it compare
    # headers rather than what the preprocessor makes of them: a compiler refuses a precompiled header if a comment
    # has changed since. Not running the preprocessor also saves up to a tenth of the time.
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
        CCACHE_DEPEND=1 "${HTTPRETRY_CCACHE}")
  endif()
endif()
