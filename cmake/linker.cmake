# Links with lld if it is installed: our tests are dozens of programs, and ld takes several times as
# long for each. What users get (no tests) is linked as everybody's.
if(NOT DEFINED HTTPRETRY_LINKER)
  set(linker "")
  find_program(HTTPRETRY_LLD ld.lld)
  mark_as_advanced(HTTPRETRY_LLD)
  if(PROJECT_IS_TOP_LEVEL AND HTTPRETRY_BUILD_TESTS AND HTTPRETRY_LLD)
    set(linker lld)
  endif()
  set(HTTPRETRY_LINKER "${linker}" CACHE STRING "A linker for -fuse-ld; empty for the compiler's own")
endif()
if(HTTPRETRY_LINKER)
  add_link_options(-fuse-ld=${HTTPRETRY_LINKER})
endif()
