# `cpack`: three Debian packages. Meant for a shared build under /usr (`--preset package`), which
# `./dev package` makes.
if(NOT BUILD_SHARED_LIBS OR NOT TARGET httpretry_cli OR NOT TARGET httpretry_testing)
  return()
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME httpretry)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
# Before the revision 1 that Debian's own package would have. A release adds ~deb12 or ~deb13, which sort
# before it, and in this order.
set(HTTPRETRY_DEBIAN_REVISION 0local1 CACHE STRING "The revision of the Debian packages")
mark_as_advanced(HTTPRETRY_DEBIAN_REVISION)
set(CPACK_DEBIAN_PACKAGE_RELEASE ${HTTPRETRY_DEBIAN_REVISION})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # each package has its own
# Debian's own variables: the person who builds a package is its maintainer. Without them an address
# that nobody can have (RFC 2606): one made from the names of user and machine could be somebody's.
set(maintainer_name "httpretry authors")
set(maintainer_address "authors@httpretry.invalid")
if(NOT "$ENV{DEBFULLNAME}" STREQUAL "")
  set(maintainer_name "$ENV{DEBFULLNAME}")
endif()
if(NOT "$ENV{DEBEMAIL}" STREQUAL "")
  set(maintainer_address "$ENV{DEBEMAIL}")
endif()
set(CPACK_PACKAGE_CONTACT "${maintainer_name} <${maintainer_address}>")
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL runtime dev tool)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

# Debian's name for libhttpretry.so.1. All libraries are in it, because they change together.
set(runtime libhttpretry${PROJECT_VERSION_MAJOR})
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
set(CPACK_POST_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/remove_ldconfig_scripts.cmake)

set(CPACK_COMPONENT_DEV_DESCRIPTION
  "HTTP client library with retry middleware (development files)
The headers of httpretry and of its test kit, and the files by which CMake and
pkg-config find them.")
set(CPACK_DEBIAN_DEV_PACKAGE_NAME libhttpretry-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "${same_version}")
set(CPACK_DEBIAN_DEV_PACKAGE_SUGGESTS "nlohmann-json3-dev, libboost-dev")  # for json/nlohmann.hpp and asio.hpp

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

# Debian's own changelog, which has only the release of the package.
string(TIMESTAMP now "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(WRITE ${PROJECT_BINARY_DIR}/changelog.Debian
"httpretry (${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium

  * Package version ${PROJECT_VERSION}. The changes of httpretry itself are in changelog.gz.

 -- ${CPACK_PACKAGE_CONTACT}  ${now}
")

# LICENSE in the form of https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
file(READ ${PROJECT_SOURCE_DIR}/LICENSE license)
string(REGEX MATCH "Copyright \\(c\\) ([^\n]+)\n+(.*[^\n])\n*$" license "${license}")
set(copyright_holders "${CMAKE_MATCH_1}")
string(REPLACE "\n\n" "\n.\n" license "${CMAKE_MATCH_2}")
string(REPLACE "\n" "\n " license "${license}")
file(WRITE ${PROJECT_BINARY_DIR}/copyright
"Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: httpretry

Files: *
Copyright: ${copyright_holders}
License: Expat
 ${license}
")

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
  install(FILES ${PROJECT_BINARY_DIR}/copyright DESTINATION ${doc}
          COMPONENT ${component} EXCLUDE_FROM_ALL)
  install_compressed(${PROJECT_BINARY_DIR}/changelog.Debian changelog.Debian.gz
                     DESTINATION ${doc} COMPONENT ${component})
  install_compressed(${PROJECT_SOURCE_DIR}/CHANGELOG.md changelog.gz
                     DESTINATION ${doc} COMPONENT ${component})
endforeach()

include(CPack)
