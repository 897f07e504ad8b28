# What `cmake --install` installs, and where. Users of a static library must also link the libraries that
# it uses, so its package files name those packages. A shared library links them itself.
include(CMakePackageConfigHelpers)

# Debian's packages use vendor-completions instead, because its zsh looks there.
set(HTTPRETRY_ZSH_FOLDER site-functions CACHE STRING "Where in share/zsh the completion goes")
mark_as_advanced(HTTPRETRY_ZSH_FOLDER)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/httpretry)
# The components are the Debian packages, except `elsewhere`: package.cmake installs that as Debian does.
set(of_packages LIBRARY COMPONENT runtime NAMELINK_COMPONENT dev ARCHIVE COMPONENT dev)

# A component that is left out installs no headers either.
file(GLOB extras RELATIVE ${PROJECT_SOURCE_DIR}/lib/extras ${PROJECT_SOURCE_DIR}/lib/extras/*)
list(REMOVE_ITEM extras ${HTTPRETRY_COMPONENTS})
list(TRANSFORM extras REPLACE "(.+)" "PATTERN;\\1;EXCLUDE" OUTPUT_VARIABLE left_out)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/httpretry
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev
        FILES_MATCHING PATTERN "*.hpp" ${left_out})

install(TARGETS httpretry EXPORT httpretry_targets ${of_packages})
install(EXPORT httpretry_targets FILE httpretry-targets.cmake NAMESPACE httpretry::
        DESTINATION ${package_dir} COMPONENT dev)
# Each component in a file of its own, because only its users need the libraries that it links.
set(component_packages "")
foreach(component ${HTTPRETRY_COMPONENTS})
  install(TARGETS httpretry_${component} EXPORT httpretry_${component}_targets ${of_packages})
  install(EXPORT httpretry_${component}_targets FILE httpretry-${component}-targets.cmake
          NAMESPACE httpretry:: DESTINATION ${package_dir} COMPONENT dev)
  set(package "")
  if(NOT BUILD_SHARED_LIBS)
    get_target_property(package httpretry_${component} COMPONENT_PACKAGE)
  endif()
  string(APPEND component_packages "set(httpretry_${component}_package \"${package}\")\n")
endforeach()

if(BUILD_SHARED_LIBS)
  set(HTTPRETRY_IS_SHARED ON)
  set(pkg_config_requires "")
else()
  set(HTTPRETRY_IS_SHARED OFF)
  set(pkg_config_requires "libcurl >= 7.88, zlib, libidn2")
endif()
configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/httpretry-config.cmake.in httpretry-config.cmake
  INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(httpretry-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/httpretry-config.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/httpretry-config-version.cmake
        DESTINATION ${package_dir} COMPONENT dev)

# The prefix is computed from where the file is, so that the tree can be moved and
# `cmake --install --prefix` works.
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
function(install_pkg_config template name)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/${template}.pc.in ${name}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${name}.pc DESTINATION ${pkg_config_dir} COMPONENT dev)
endfunction()
install_pkg_config(httpretry httpretry)
foreach(component ${HTTPRETRY_COMPONENTS})
  get_target_property(component_description httpretry_${component} COMPONENT_DESCRIPTION)
  set(component_requires "")
  if(NOT BUILD_SHARED_LIBS)
    get_target_property(component_requires httpretry_${component} COMPONENT_PKG_CONFIG)
  endif()
  list(PREPEND component_requires "httpretry = ${PROJECT_VERSION}")
  list(JOIN component_requires ", " component_requires)
  install_pkg_config(httpretry-component httpretry-${component})
endforeach()

install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT elsewhere)
install(FILES ${PROJECT_SOURCE_DIR}/lib/core/policy/policy-file.md
              ${PROJECT_SOURCE_DIR}/lib/core/policy/presets.md
        DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT tool)
install(FILES ${PROJECT_SOURCE_DIR}/cmake/coroutines.query
        DESTINATION ${CMAKE_INSTALL_DATADIR}/httpretry COMPONENT dev)
install(FILES ${PROJECT_SOURCE_DIR}/cmake/policy.schema.json
        DESTINATION ${CMAKE_INSTALL_DATADIR}/httpretry COMPONENT tool)

if(TARGET httpretry_cli)
  install(TARGETS httpretry_cli COMPONENT tool)
  if(NOT CMAKE_CROSSCOMPILING)  # the program writes these when it is built
    set(written_by_program ${PROJECT_BINARY_DIR}/apps)
    install(FILES ${written_by_program}/httpretry.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1
            COMPONENT elsewhere)
    install(FILES ${written_by_program}/httpretry.bash RENAME httpretry
            DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT tool)
    install(FILES ${written_by_program}/_httpretry
            DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/${HTTPRETRY_ZSH_FOLDER} COMPONENT tool)
    install(FILES ${written_by_program}/httpretry.fish
            DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT tool)
  endif()
endif()
