# Compile through ccache if it is installed, but only as the top project: a program that uses us with
# add_subdirectory decides for itself.
if(PROJECT_IS_TOP_LEVEL AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER
   AND NOT DEFINED ENV{CMAKE_CXX_COMPILER_LAUNCHER})
  find_program(HTTPRETRY_CCACHE ccache)
  mark_as_advanced(HTTPRETRY_CCACHE)
  # The cached path may be out of date: the program may have been removed.
  if(HTTPRETRY_CCACHE AND EXISTS "${HTTPRETRY_CCACHE}")
    # The settings let ccache serve objects that were compiled with precompiled headers.
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
        "${HTTPRETRY_CCACHE}")
  endif()
endif()
