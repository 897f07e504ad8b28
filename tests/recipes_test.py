#!/usr/bin/env python3
"""What can be checked of the Conan recipe and the vcpkg port without Conan and vcpkg: that they run
(against stand-ins), and agree with CMakeLists.txt about versions, options, packages and targets."""

import importlib.util
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).parents[1]
CMAKE = (ROOT / "CMakeLists.txt").read_text()
VERSION = re.search(r"project\(httpretry VERSION (\S+)", CMAKE).group(1)
OPTIONS = set(re.findall(r"option\((\w+)", CMAKE))
PACKAGES = dict(re.findall(r"find_package\((\w+)(?: ([\d.]+))? REQUIRED\)", CMAKE))
PACKAGES.pop("Threads")
PACKAGES.pop("PkgConfig")
PACKAGES |= {name: "" for name in re.findall(r"pkg_check_modules\(\w+ REQUIRED IMPORTED_TARGET (\w+)\)", CMAKE)}
# Of httpretry::fleet and httpretry::batch, which neither of them builds.
PACKAGES.pop("hiredis")
PACKAGES.pop("SQLite3")
# Their names elsewhere.
CONAN = {"CURL": "libcurl", "ZLIB": "zlib", "OpenSSL": "openssl"}
VCPKG = {"CURL": "curl", "ZLIB": "zlib", "OpenSSL": "openssl", "nlohmann_json": "nlohmann-json"}


class Recipes(unittest.TestCase):
    def test_the_first_line_says_that_a_recipe_is_untested(self):
        recipes = [path for folder in ("conan", "vcpkg") for path in (ROOT / "cmake" / folder).rglob("*")
                   if path.suffix in (".py", ".cmake", ".json")]
        self.assertEqual(len(recipes), 4)
        for path in recipes:
            self.assertIn("Untested", path.read_text().split("\n")[0], path)


class Conan(unittest.TestCase):
    def recipe(self, path, **options):
        """An instance of the recipe, whose base class and tools are stand-ins that remember."""
        class ConanFile:
            recipe_folder = str(ROOT / "cmake/conan")
            export_sources_folder = source_folder = package_folder = "/nowhere"
            tested_reference_str = f"httpretry/{VERSION}"
            cpp = mock.MagicMock()
            run = mock.MagicMock()

            def requires(self, what):
                self.required.append(what)

        names = {"conan": ("ConanFile",), "conan.errors": ("ConanInvalidConfiguration",),
                 "conan.tools": (), "conan.tools.build": ("check_min_cppstd", "can_run"),
                 "conan.tools.cmake": ("CMake", "CMakeDeps", "CMakeToolchain", "cmake_layout"),
                 "conan.tools.files": ("copy", "load", "rmdir")}
        modules = {}
        for module, members in names.items():
            modules[module] = types.ModuleType(module)
            for member in members:
                setattr(modules[module], member, mock.MagicMock())
        modules["conan"].ConanFile = ConanFile
        modules["conan.errors"].ConanInvalidConfiguration = ValueError
        modules["conan.tools.files"].load = lambda _, file: pathlib.Path(file).read_text()
        self.toolchain = modules["conan.tools.cmake"].CMakeToolchain.return_value
        self.toolchain.cache_variables = {}
        self.copied = modules["conan.tools.files"].copy
        with mock.patch.dict(sys.modules, modules):
            spec = importlib.util.spec_from_file_location("recipe", ROOT / path)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        recipe = next(c for c in vars(module).values() if isinstance(c, type)
                      and issubclass(c, ConanFile) and c is not ConanFile)()
        recipe.required = []
        recipe.settings = mock.MagicMock(os="Linux")
        recipe.settings.compiler.__str__ = lambda _: "gcc"
        recipe.settings.compiler.version = "12.2"
        recipe.options = types.SimpleNamespace(**(getattr(recipe, "default_options", {}) | options))
        recipe.cpp_info = mock.MagicMock()
        parts = {}
        recipe.cpp_info.components.__getitem__ = lambda _, n: parts.setdefault(n, mock.MagicMock())
        recipe.parts = parts
        return recipe

    def test_the_recipe_agrees_with_cmake(self):
        recipe = self.recipe("cmake/conan/conanfile.py", with_tool=True, with_spdlog=True)
        recipe.set_version()
        self.assertEqual(recipe.version, VERSION)
        for step in ("layout", "requirements", "validate", "generate", "build", "package"):
            getattr(recipe, step)()
        self.assertEqual(set(self.toolchain.cache_variables) - OPTIONS, set())
        wanted = {CONAN.get(name, name): least for name, least in PACKAGES.items()}
        self.assertEqual({r.split("/")[0] for r in recipe.required}, set(wanted))
        for one in recipe.required:
            name, least = re.match(r"(\w+)/\[>=([\d.]+) <\d+\]$", one).groups()
            self.assertIn(wanted[name], ("", least))

    def test_what_it_exports_is_what_there_is(self):
        recipe = self.recipe("cmake/conan/conanfile.py")
        recipe.export_sources()
        self.assertTrue(self.copied.called)
        for call in self.copied.call_args_list:
            pattern, root = call.args[1:3]
            self.assertTrue(list(pathlib.Path(root).glob(pattern)), pattern)

    def test_its_targets_are_ours(self):
        recipe = self.recipe("cmake/conan/conanfile.py", with_spdlog=True)
        recipe.package_info()
        targets = {part.set_property.mock_calls[0].args[1] for part in recipe.parts.values()}
        text = (ROOT / "lib/CMakeLists.txt").read_text()
        ours = set(re.findall(r"add_library\((httpretry::\w+) ALIAS", text))
        ours |= {f"httpretry::{name}" for name in re.findall(r"^  httpretry_component\((\w+)", text, re.MULTILINE)}
        # The recipes do not offer these.
        ours -= {f"httpretry::{name}"
                 for name in ("batch", "compression", "fleet", "oauth2", "paging", "simulate", "telemetry")}
        self.assertEqual(targets, ours)

    def test_what_cannot_work_is_refused(self):
        recipe = self.recipe("cmake/conan/conanfile.py", with_tool=True, with_testing=False)
        self.assertRaises(ValueError, recipe.validate)
        recipe = self.recipe("cmake/conan/conanfile.py")
        recipe.settings.os = "Windows"
        self.assertRaises(ValueError, recipe.validate)

    def test_its_test_package_runs_our_consumer(self):
        recipe = self.recipe("cmake/conan/test_package/conanfile.py")
        recipe.requirements()
        recipe.generate()
        recipe.build()
        recipe.test()
        self.assertEqual(recipe.required, [f"httpretry/{VERSION}"])
        self.assertTrue((ROOT / "cmake/conan/test_package/../../../tests/package/CMakeLists.txt").exists())


class Vcpkg(unittest.TestCase):
    port = ROOT / "cmake/vcpkg/httpretry"

    def test_the_manifest_agrees_with_cmake(self):
        manifest = json.loads((self.port / "vcpkg.json").read_text())
        self.assertEqual(manifest["version-semver"], VERSION)
        needed = manifest["dependencies"] + sum(
            (manifest["features"][name]["dependencies"] for name in ("testing", "spdlog")), [])
        needed = [{"name": n} if isinstance(n, str) else n for n in needed]
        least = {n["name"]: n.get("version>=", "") for n in needed if not n.get("host")}
        self.assertEqual(set(least), {VCPKG.get(name, name) for name in PACKAGES})
        for name, version in PACKAGES.items():
            self.assertEqual(least[VCPKG.get(name, name)].removesuffix(".0"), version)

    def test_the_port_runs_with_options_that_there_are(self):
        """The port's script with stand-ins for vcpkg's functions, which print what they are given."""
        calls = ("vcpkg_check_features", "vcpkg_cmake_configure", "vcpkg_cmake_install",
                 "vcpkg_cmake_config_fixup", "vcpkg_fixup_pkgconfig", "vcpkg_copy_tools",
                 "vcpkg_install_copyright")
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "run.cmake"
            script.write_text("cmake_minimum_required(VERSION 3.22)\n" + "".join(
                f'function({name})\n  message("{name} ${{ARGN}}")\nendfunction()\n' for name in calls)
                + f'set(PORT httpretry)\nset(FEATURES core spdlog testing tools)\n'
                  f'set(CURRENT_PACKAGES_DIR "{folder}/packages")\n'
                  f'include("{self.port}/portfile.cmake")\n')
            said = subprocess.run([shutil.which("cmake"), "-P", script], capture_output=True,
                                  text=True, check=False)
            self.assertEqual(said.returncode, 0, said.stderr)
            self.assertTrue((pathlib.Path(folder) / "packages/share/httpretry/usage").exists())
        self.assertIn(f"SOURCE_PATH;{ROOT}", said.stderr)
        self.assertIn("vcpkg_install_copyright FILE_LIST;", said.stderr)
        used = set(re.findall(r"HTTPRETRY_\w+", said.stderr))
        self.assertGreaterEqual(len(used), 4)
        self.assertEqual(used - OPTIONS, set())


if __name__ == "__main__":
    unittest.main()
