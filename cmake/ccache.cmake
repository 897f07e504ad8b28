# Compile through ccache where it is there. Only when we are the project being built: a program that
# takes us in with add_subdirectory decides for itself.
if(PROJECT_IS_TOP_LEVEL AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER
   AND NOT DEFINED ENV{CMAKE_CXX_COMPILER_LAUNCHER})
  find_program(HTTPRETRY_CCACHE ccache)
  mark_as_advanced(HTTPRETRY_CCACHE)
  # A cached path may be stale: the program can have been removed since.
  if(HTTPRETRY_CCACHE AND EXISTS "${HTTPRETRY_CCACHE}")
    set(CMAKE_CXX_COMPILER_LAUNCHER "${HTTPRETRY_CCACHE}")
  endif()
endif()
