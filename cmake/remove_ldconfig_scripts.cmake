# Run by cpack on the packages it has made. CPack adds scripts that call ldconfig to a package with a
# shared library. dpkg does that itself because of the file `triggers`, so Debian wants no scripts.
foreach(package ${CPACK_PACKAGE_FILES})
  set(folder ${CPACK_TEMPORARY_DIRECTORY}/without_scripts)
  file(REMOVE_RECURSE ${folder})
  execute_process(COMMAND dpkg-deb --raw-extract ${package} ${folder} COMMAND_ERROR_IS_FATAL ANY)
  file(GLOB scripts ${folder}/DEBIAN/postinst ${folder}/DEBIAN/postrm)
  if(scripts)
    file(REMOVE ${scripts})
    execute_process(COMMAND dpkg-deb --root-owner-group --build ${folder} ${package}
                    OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  endif()
  file(REMOVE_RECURSE ${folder})
endforeach()
