"""Untested: this Conan 2 recipe has only been run with stubs for Conan, by tests/recipes_test.py.

It builds the tree that contains it: conan create cmake/conan --build=missing"""

import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rmdir

required_conan_version = ">=2.0"


class HttpretryConan(ConanFile):
    name = "httpretry"
    description = "HTTP client with retry middleware"
    license = "MIT"
    topics = ("http", "http-client", "retry", "backoff", "libcurl")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {
        "shared": [True, False],
        "fPIC": [True, False],
        "with_spdlog": [True, False],
        "with_testing": [True, False],
        "with_tool": [True, False],
    }
    default_options = {"shared": False, "fPIC": True, "with_spdlog": False, "with_testing": True,
                       "with_tool": False}
    implements = ["auto_shared_fpic"]

    def _root(self):
        return os.path.join(self.recipe_folder, "..", "..")

    def set_version(self):
        text = load(self, os.path.join(self._root(), "CMakeLists.txt"))
        self.version = re.search(r"project\(httpretry VERSION (\S+)", text).group(1)

    def export_sources(self):
        for pattern in ("CMakeLists.txt", "LICENSE", "CHANGELOG.md", "apps/*", "cmake/*",
                        "include/*", "lib/*"):
            copy(self, pattern, self._root(), self.export_sources_folder)

    def layout(self):
        cmake_layout(self)

    def requirements(self):
        self.requires("libcurl/[>=7.88 <9]")
        self.requires("zlib/[>=1.2.11 <2]")
        self.requires("libidn2/[>=2.3 <3]")
        self.requires("nlohmann_json/[>=3.11 <4]")
        if self.options.with_spdlog:
            self.requires("spdlog/[>=1.10 <2]")
        if self.options.with_testing:
            self.requires("openssl/[>=1.1 <4]")

    def validate(self):
        check_min_cppstd(self, 20)
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("httpretry needs Linux: cmake/README.md lists why")
        least = {"gcc": 12, "clang": 14}.get(str(self.settings.compiler), 0)
        if int(str(self.settings.compiler.version).split(".", 1)[0]) < least:
            raise ConanInvalidConfiguration(f"{self.settings.compiler} before {least} is too old")
        if self.options.with_tool and not self.options.with_testing:
            raise ConanInvalidConfiguration("with_tool needs with_testing: `serve` is of the kit")

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["HTTPRETRY_BUILD_TESTS"] = False
        toolchain.cache_variables["HTTPRETRY_BUILD_EXAMPLES"] = False
        toolchain.cache_variables["HTTPRETRY_BUILD_SPDLOG"] = bool(self.options.with_spdlog)
        toolchain.cache_variables["HTTPRETRY_BUILD_FLEET"] = False  # needs hiredis
        toolchain.cache_variables["HTTPRETRY_BUILD_COMPRESSION"] = False  # needs brotli and zstd
        toolchain.cache_variables["HTTPRETRY_BUILD_BATCH"] = False  # needs SQLite
        toolchain.cache_variables["HTTPRETRY_BUILD_TEST_KIT"] = bool(self.options.with_testing)
        toolchain.cache_variables["HTTPRETRY_BUILD_APPS"] = bool(self.options.with_tool)
        toolchain.generate()
        CMakeDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        CMake(self).install()
        # Conan's own generators make these.
        rmdir(self, os.path.join(self.package_folder, "lib", "cmake"))
        rmdir(self, os.path.join(self.package_folder, "lib", "pkgconfig"))

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "httpretry")
        library = self.cpp_info.components["httpretry"]
        library.set_property("cmake_target_name", "httpretry::httpretry")
        library.set_property("pkg_config_name", "httpretry")
        library.libs = ["httpretry"]
        library.requires = ["libcurl::libcurl", "zlib::zlib", "libidn2::libidn2",
                            "nlohmann_json::nlohmann_json"]
        library.system_libs = ["pthread"]
        if self.options.with_spdlog:
            logger = self.cpp_info.components["spdlog"]
            logger.set_property("cmake_target_name", "httpretry::spdlog")
            logger.set_property("pkg_config_name", "httpretry-spdlog")
            logger.libs = ["httpretry_spdlog"]
            logger.requires = ["httpretry", "spdlog::spdlog"]
        if self.options.with_testing:
            kit = self.cpp_info.components["testing"]
            kit.set_property("cmake_target_name", "httpretry::testing")
            kit.libs = ["httpretry_testing"]
            kit.requires = ["httpretry", "openssl::openssl", "zlib::zlib"]
