# Compiles several sources as one, so that the headers they share are compiled once. A full build takes about
# half the time; a build after a change to one file takes some seconds longer.
find_package(Python3 3.9 QUIET COMPONENTS Interpreter)
option(HTTPRETRY_UNITY "Compile several sources as one; needs Python" "${Python3_Interpreter_FOUND}")
if(HTTPRETRY_UNITY AND NOT Python3_Interpreter_FOUND)
  message(FATAL_ERROR "HTTPRETRY_UNITY needs Python 3.9 or later; set it to OFF.")
endif()

# httpretry_unity(TARGET [EXCEPT REGEX]): once all its sources are known. unity_groups.py says which go together; those
# whose name fits REGEX, or that have options of their own, are built alone. Unlike CMake's UNITY_BUILD, this names
# the sources as seen from the project, so that ccache knows the result in another clone. The path of its files from
# the build directory is the same even if another project takes in this one.
function(httpretry_unity target)
  if(NOT HTTPRETRY_UNITY)
    return()
  endif()
  cmake_parse_arguments(arg "" "EXCEPT" "" ${ARGN})
  get_target_property(all_sources ${target} SOURCES)
  set(sources "")
  foreach(source ${all_sources})
    get_source_file_property(definitions ${source} COMPILE_DEFINITIONS)
    get_source_file_property(options ${source} COMPILE_OPTIONS)
    if(source MATCHES "\\.cpp$" AND NOT definitions AND NOT options
       AND NOT (arg_EXCEPT AND source MATCHES "${arg_EXCEPT}"))
      list(APPEND sources ${source})
    endif()
  endforeach()
  execute_process(
    COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/cmake/unity_groups.py ${sources}
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
    OUTPUT_VARIABLE groups COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[^\n]+" groups "${groups}")
  set(numbers "")
  foreach(line ${groups})
    string(REGEX MATCH "^([0-9]+) (.*)$" line "${line}")
    set(number ${CMAKE_MATCH_1})
    set(source ${CMAKE_MATCH_2})
    list(REMOVE_ITEM all_sources ${source})
    get_filename_component(path ${source} ABSOLUTE)
    file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${path})
    list(APPEND numbers ${number})
    string(APPEND includes_${number} "#include \"${path}\"\n")
  endforeach()
  list(REMOVE_DUPLICATES numbers)
  foreach(number ${numbers})
    set(several ${CMAKE_BINARY_DIR}/httpretry-unity/${target}_${number}.cpp)
    file(CONFIGURE OUTPUT ${several} CONTENT "${includes_${number}}" @ONLY)
    list(APPEND all_sources ${several})
  endforeach()
  set_target_properties(${target} PROPERTIES SOURCES "${all_sources}")
  # A change of one may be a reason to group them anew.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${sources})
  # A name of one file may hide that of another; the build that has each file alone warns of the rest.
  target_compile_options(${target} PRIVATE -Wno-shadow)
  # g++ warns of what is in a namespace without a name, unless that stands in the main file.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()
