# What `cmake --install` puts where. A static library makes its users link what it is made of, so
# that its package files name those packages; a shared one carries them along itself.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/httpretry)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/httpretry
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.hpp")

install(TARGETS httpretry EXPORT httpretry_targets)
install(EXPORT httpretry_targets FILE httpretry-targets.cmake NAMESPACE httpretry::
        DESTINATION ${package_dir})
# In a file of its own, because only its users need OpenSSL.
if(HTTPRETRY_BUILD_TEST_KIT)
  install(TARGETS httpretry_testing EXPORT httpretry_testing_targets)
  install(EXPORT httpretry_testing_targets FILE httpretry-testing-targets.cmake
          NAMESPACE httpretry:: DESTINATION ${package_dir})
endif()

if(BUILD_SHARED_LIBS)
  set(HTTPRETRY_IS_SHARED ON)
  set(pkg_config_requires "")
else()
  set(HTTPRETRY_IS_SHARED OFF)
  set(pkg_config_requires "libcurl >= 7.88, zlib, spdlog")
endif()
configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/httpretry-config.cmake.in httpretry-config.cmake
  INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(httpretry-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/httpretry-config.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/httpretry-config-version.cmake
        DESTINATION ${package_dir})

# The prefix is that of the place where the file is found, so that the tree can be moved and
# `cmake --install --prefix` tells the truth.
cmake_path(APPEND CMAKE_INSTALL_LIBDIR pkgconfig OUTPUT_VARIABLE pkg_config_dir)
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}" OR IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
  set(pkg_config_prefix "${CMAKE_INSTALL_PREFIX}")
else()
  file(RELATIVE_PATH up "/${pkg_config_dir}" "/")
  string(REGEX REPLACE "/$" "" up "${up}")
  set(pkg_config_prefix "\${pcfiledir}/${up}")
endif()
cmake_path(APPEND pkg_config_libdir "\${prefix}" "${CMAKE_INSTALL_LIBDIR}")
cmake_path(APPEND pkg_config_includedir "\${prefix}" "${CMAKE_INSTALL_INCLUDEDIR}")
configure_file(${PROJECT_SOURCE_DIR}/cmake/httpretry.pc.in httpretry.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/httpretry.pc DESTINATION ${pkg_config_dir})

install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES ${PROJECT_SOURCE_DIR}/cmake/coroutines.query
              ${PROJECT_SOURCE_DIR}/cmake/policy.schema.json
        DESTINATION ${CMAKE_INSTALL_DATADIR}/httpretry)

if(TARGET httpretry_cli)
  install(TARGETS httpretry_cli)
  if(NOT CMAKE_CROSSCOMPILING)  # where the program can be run, it has written these
    set(written_by_program ${PROJECT_BINARY_DIR}/apps)
    install(FILES ${written_by_program}/httpretry.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
    install(FILES ${written_by_program}/httpretry.bash RENAME httpretry
            DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
    install(FILES ${written_by_program}/_httpretry
            DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
    install(FILES ${written_by_program}/httpretry.fish
            DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
  endif()
endif()
