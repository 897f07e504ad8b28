# `cpack`: three Debian packages. Meant for a shared build under /usr (`--preset package`), which
# `./dev package` makes.
if(NOT BUILD_SHARED_LIBS OR NOT TARGET httpretry_cli OR NOT TARGET httpretry_testing)
  return()
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME httpretry)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # each package has its own
# Debian's own variables: the person who builds a package is its maintainer.
if(DEFINED ENV{DEBEMAIL})
  set(CPACK_PACKAGE_CONTACT "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
else()
  set(CPACK_PACKAGE_CONTACT "httpretry <root@localhost>")
endif()
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL runtime dev tool)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

# Debian's name for libhttpretry.so.0.1. Both libraries are in it, because they change together.
set(runtime libhttpretry${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set(same_version "${runtime} (= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})")

set(CPACK_COMPONENT_RUNTIME_DESCRIPTION
  "HTTP client library with retry middleware
Sends HTTP requests with libcurl and retries failed ones, if a retry can help
and can do no harm. Policies in code or in a file say how.")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME ${runtime})
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
file(WRITE ${PROJECT_BINARY_DIR}/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/triggers)

set(CPACK_COMPONENT_DEV_DESCRIPTION
  "HTTP client library with retry middleware (development files)
The headers of httpretry and of its test kit, and the files by which CMake and
pkg-config find them.")
set(CPACK_DEBIAN_DEV_PACKAGE_NAME libhttpretry-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "${same_version}")

set(CPACK_COMPONENT_TOOL_DESCRIPTION
  "send HTTP requests, and retry them by a policy
A command with curl's options that retries failed requests. It reads policies
for each endpoint from a file, shows what a policy does without a network, and
runs a server that fails on purpose, for tests.")
set(CPACK_DEBIAN_TOOL_PACKAGE_NAME httpretry)
set(CPACK_DEBIAN_TOOL_PACKAGE_SECTION web)
set(CPACK_DEBIAN_TOOL_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_TOOL_PACKAGE_DEPENDS "${same_version}")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/lib)

# Files that Debian needs under other names, or compressed.
function(install_compressed file as)
  cmake_parse_arguments(arg "" "DESTINATION;COMPONENT" "" ${ARGN})
  install(CODE "execute_process(COMMAND gzip -9nc \"${file}\" COMMAND_ERROR_IS_FATAL ANY
                                OUTPUT_FILE \"${PROJECT_BINARY_DIR}/${as}\")"
          COMPONENT ${arg_COMPONENT} EXCLUDE_FROM_ALL)
  install(FILES ${PROJECT_BINARY_DIR}/${as} DESTINATION ${arg_DESTINATION}
          COMPONENT ${arg_COMPONENT} EXCLUDE_FROM_ALL)
endfunction()
install_compressed(${PROJECT_BINARY_DIR}/apps/httpretry.1 httpretry.1.gz
                   DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT tool)
foreach(component runtime dev tool)
  string(TOUPPER ${component} upper)
  set(doc ${CMAKE_INSTALL_DATAROOTDIR}/doc/${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE RENAME copyright DESTINATION ${doc}
          COMPONENT ${component} EXCLUDE_FROM_ALL)
  install_compressed(${PROJECT_SOURCE_DIR}/CHANGELOG.md changelog.gz
                     DESTINATION ${doc} COMPONENT ${component})
endforeach()

include(CPack)
