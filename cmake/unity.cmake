# Compiles several sources as one, so that the headers they share are compiled once. A full build takes about
# half the time; a build after a change to one file takes some seconds longer.
find_package(Python3 3.9 QUIET COMPONENTS Interpreter)
option(HTTPRETRY_UNITY "Compile several sources as one; needs Python" "${Python3_Interpreter_FOUND}")
if(HTTPRETRY_UNITY AND NOT Python3_Interpreter_FOUND)
  message(FATAL_ERROR "HTTPRETRY_UNITY needs Python 3.9 or later; set it to OFF.")
endif()

# httpretry_unity(TARGET [EXCEPT REGEX]): once all its sources are known. unity_groups.py says which go
# together; those whose name fits REGEX, or that have options of their own, are built alone.
function(httpretry_unity target)
  if(NOT HTTPRETRY_UNITY)
    return()
  endif()
  cmake_parse_arguments(arg "" "EXCEPT" "" ${ARGN})
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cpp$")
  if(arg_EXCEPT)
    list(FILTER sources EXCLUDE REGEX "${arg_EXCEPT}")
  endif()
  execute_process(
    COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/cmake/unity_groups.py ${sources}
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
    OUTPUT_VARIABLE groups COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[^\n]+" groups "${groups}")
  foreach(line ${groups})
    string(REGEX MATCH "^([0-9]+) (.*)$" line "${line}")
    set_source_files_properties("${CMAKE_MATCH_2}" PROPERTIES UNITY_GROUP "${target}_${CMAKE_MATCH_1}")
  endforeach()
  # A change of one may be a reason to group them anew.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${sources})
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # A name of one file may hide that of another; the build that has each file alone warns of the rest.
  target_compile_options(${target} PRIVATE -Wno-shadow)
  # g++ warns of what is in a namespace without a name, unless that stands in the main file.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()
