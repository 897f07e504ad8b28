# Untested: this port has only been run with stubs for vcpkg's functions, by tests/recipes_test.py.
#
# An overlay port for the tree that contains it: vcpkg install httpretry --overlay-ports=cmake/vcpkg
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

vcpkg_check_features(OUT_FEATURE_OPTIONS FEATURE_OPTIONS
  FEATURES
    spdlog HTTPRETRY_BUILD_SPDLOG
    testing HTTPRETRY_BUILD_TEST_KIT
    tools HTTPRETRY_BUILD_APPS
)
vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    -DHTTPRETRY_BUILD_TESTS=OFF
    -DHTTPRETRY_BUILD_EXAMPLES=OFF
    -DHTTPRETRY_BUILD_FLEET=OFF
    -DHTTPRETRY_BUILD_BATCH=OFF
    -DHTTPRETRY_BUILD_COMPRESSION=OFF
    -DHTTPRETRY_INSTALL=ON
    ${FEATURE_OPTIONS}
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/httpretry)
vcpkg_fixup_pkgconfig()
if("tools" IN_LIST FEATURES)
  vcpkg_copy_tools(TOOL_NAMES httpretry AUTO_CLEAN)
endif()

file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share"
                    "${CURRENT_PACKAGES_DIR}/share/doc")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
