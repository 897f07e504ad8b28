#!/usr/bin/env python3
"""The parts of ./dev release that need neither root nor a network: the source archive of a small repository, what is
refused, and the SBOM of a sample list of packages."""

import copy
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "cmake/release"))
import sbom  # noqa: E402

TIME = 1700000000
COPIED = ("cmake/release/run", "cmake/release/sbom.py", "tests/systems/roots.sh")


@unittest.skipUnless(shutil.which("git") and shutil.which("xz"), "needs git and xz")
class Release(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "programs").mkdir()
        self.environment = dict(os.environ, PATH=f"{self.folder}/programs:{os.environ['PATH']}", HOME=folder.name,
                                GIT_CONFIG_NOSYSTEM="1", TMPDIR=folder.name)
        for name in ("AUTHOR", "COMMITTER"):
            self.environment |= {f"GIT_{name}_NAME": "a", f"GIT_{name}_EMAIL": "a@example.com",
                                 f"GIT_{name}_DATE": f"{TIME} +0000"}
        self.tree = self.folder / "a tree"
        for path in COPIED:
            (self.tree / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, self.tree / path)
        (self.tree / "CMakeLists.txt").write_text("project(httpretry VERSION 1.2.3 LANGUAGES CXX)\n")
        (self.tree / "CHANGELOG.md").write_text("## 1.2.3 – unreleased\n")
        (self.tree / "z").write_text("last\n")
        (self.tree / ".gitignore").write_text("/build/\n")
        self.git("init", "-q")
        self.git("add", ".")
        self.git("commit", "-q", "-m", "all")

    def git(self, *words):
        subprocess.run(["git", "-C", self.tree, *words], check=True, env=self.environment, stdin=subprocess.DEVNULL)

    def program(self, name, text):
        path = self.folder / "programs" / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def run_release(self, *words, tree=None, **options):
        return subprocess.run([(tree or self.tree) / "cmake/release/run", *words], env=self.environment,
                              capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False, **options)

    def assert_refused(self, result, sentence, out):
        self.assertNotEqual(result.returncode, 0)
        self.assertIn(sentence, result.stderr)
        self.assertEqual([path.name for path in out.parent.glob(out.name + "*")], [])

    def test_the_archive_of_another_clone_has_the_same_bytes(self):
        clone = self.folder / "clone"
        self.git("clone", "-q", self.tree, clone)
        for path in clone.rglob("*"):
            if ".git" not in path.relative_to(clone).parts:
                os.utime(path, (1, 1))
        archives = []
        for tree, mask in ((self.tree, 0o022), (clone, 0o077)):
            out = self.folder / f"out {mask}"
            result = self.run_release("archive", out, tree=tree, umask=mask)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(os.listdir(out), ["httpretry-1.2.3.tar.xz"])
            archives.append(out / "httpretry-1.2.3.tar.xz")
        first, second = (hashlib.sha256(path.read_bytes()).hexdigest() for path in archives)
        self.assertEqual(first, second)
        with tarfile.open(archives[0]) as archive:
            members = archive.getmembers()
        names = [member.name for member in members if member.isfile()]
        self.assertEqual(names, sorted(names))
        self.assertIn("httpretry-1.2.3/cmake/release/run", names)
        self.assertEqual({(member.uid, member.gid, member.mtime) for member in members}, {(0, 0, TIME)})
        self.assertEqual({member.mode for member in members}, {0o644, 0o755})

    def test_changes_that_are_not_committed_are_refused(self):
        out = self.folder / "out"
        for path, text in (("z", "changed\n"), ("new", "")):
            with self.subTest(path):
                (self.tree / path).write_text(text)
                result = self.run_release("archive", out)
                self.assert_refused(result, "has changes that are not committed", out)
                self.assertIn(path, result.stderr.splitlines()[-1])
                self.git("clean", "-fdq")
                self.git("checkout", "-q", ".")

    def test_a_failure_leaves_nothing_that_looks_complete(self):
        out = self.folder / "out"
        out.mkdir()
        self.program("xz", "exit 1")
        self.assert_refused(self.run_release("archive", out), "", out)

    def test_an_archive_that_differs_when_made_again_is_no_release(self):
        out = self.folder / "out"
        self.program("xz", f"cat; date +%N >>'{self.folder}/n'; cat '{self.folder}/n'")
        self.assert_refused(self.run_release("archive", out), "differs when it is made again", out)

    def test_packages_need_root(self):
        out = self.folder / "out"
        self.program("id", "echo 1000")
        self.assert_refused(self.run_release("all", out, self.folder / "roots", "bookworm"), "needs root", out)

    def test_without_a_network_it_says_so(self):
        out = self.folder / "out"
        self.program("id", "echo 0")
        self.program("debootstrap", "echo 'W: Failure trying to run'; exit 1")
        result = self.run_release("all", out, self.folder / "roots", "bookworm")
        self.assert_refused(result, "cannot make a root of bookworm: is there a network?", out)

    def test_wrong_words_are_refused(self):
        for words in ((), ("archive",), ("all", "out", "roots"), ("some", "out")):
            result = self.run_release(*words)
            self.assertEqual(result.returncode, 1)
            self.assertIn("usage: cmake/release/run archive FOLDER", result.stderr)


FORMAT = "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\n"
OWN = {"version": "1.2.3-0local1~deb12", "maintainer": "A B <a@example.com>", "sha256": "0" * 64,
       "copyright": FORMAT + "Files: *\nCopyright: 2026 A B\nLicense: Expat\n Permission\n"}
OTHER = {"architecture": "amd64", "maintainer": "C <c@example.com>", "homepage": "https://example.com/",
         "headers": False, "links": [], "copyright": ""}
FACTS = {
    "release": "12", "created": "2026-01-02T03:04:05Z",
    "source": {"file": "httpretry-1.2.3.tar.xz", "version": "1.2.3", "sha256": "1" * 64},
    "ours": [
        OWN | {"name": "libhttpretry1", "file": "a.deb", "links": ["libstdc++6", "libcurl4"]},
        OWN | {"name": "httpretry", "file": "b.deb", "links": ["libhttpretry1", "libc6"]},
        OWN | {"name": "libhttpretry-dev", "file": "c.deb", "links": [], "depends": ["libhttpretry1"]}],
    "others": [
        OTHER | {"name": "libc6", "version": "2.36-9", "source": "glibc 2.36-9"},
        OTHER | {"name": "libstdc++6", "version": "12.2.0-14", "source": "gcc-12 12.2.0-14", "links": ["libc6"]},
        OTHER | {"name": "libcurl4", "version": "7.88.1-10+deb12u5", "source": "curl 7.88.1-10+deb12u5",
                 "links": ["libc6"], "copyright": FORMAT + "Files: *\nCopyright: D\nLicense: curl\n"},
        OTHER | {"name": "nlohmann-json3-dev", "version": "3.11.2-2", "architecture": "all", "headers": True,
                 "source": "nlohmann-json3 3.11.2-2", "copyright": FORMAT + "Files: *\nLicense: Own and Expat\n\n"
                 "License: Own and Expat\n As it is.\n .\n Really.\n"}]}


class Sbom(unittest.TestCase):
    def setUp(self):
        self.document = sbom.document(FACTS)
        self.packages = {package["name"]: package for package in self.document["packages"]
                         if package["SPDXID"] != "SPDXRef-source"}
        names = {package["SPDXID"]: package["name"] for package in self.document["packages"]}
        self.relations = {(names.get(one["spdxElementId"]), one["relationshipType"], names[one["relatedSpdxElement"]])
                          for one in self.document["relationships"]}

    def test_the_sample_follows_the_rules(self):
        self.assertEqual(sbom.problems(self.document), [])

    def test_each_link_is_a_relationship(self):
        for expected in (("libhttpretry1", "DYNAMIC_LINK", "libcurl4"), ("httpretry", "DYNAMIC_LINK", "libhttpretry1"),
                         ("libcurl4", "DYNAMIC_LINK", "libc6"), ("libhttpretry-dev", "DEPENDS_ON", "libhttpretry1"),
                         ("nlohmann-json3-dev", "BUILD_DEPENDENCY_OF", "libhttpretry1")):
            self.assertIn(expected, self.relations)
        self.assertNotIn(("nlohmann-json3-dev", "BUILD_DEPENDENCY_OF", "libhttpretry-dev"), self.relations)

    def test_a_package_of_debian_has_its_supplier_version_and_purl(self):
        curl = self.packages["libcurl4"]
        self.assertEqual((curl["supplier"], curl["versionInfo"]), ("Organization: Debian", "7.88.1-10+deb12u5"))
        self.assertEqual(curl["externalRefs"][0]["referenceLocator"],
                         "pkg:deb/debian/libcurl4@7.88.1-10%2Bdeb12u5?arch=amd64&distro=debian-12")
        self.assertEqual(self.packages["httpretry"]["supplier"], "Organization: A B (a@example.com)")

    def test_licenses_are_those_of_machine_readable_copyright_files(self):
        self.assertEqual(self.packages["libhttpretry1"]["licenseDeclared"], "MIT")
        self.assertEqual(self.packages["libcurl4"]["licenseDeclared"], "curl")
        self.assertEqual(self.packages["libc6"]["licenseDeclared"], "NOASSERTION")
        self.assertEqual(self.packages["nlohmann-json3-dev"]["licenseDeclared"],
                         "LicenseRef-nlohmann-json3-dev-Own-and-Expat")
        self.assertEqual(self.document["hasExtractedLicensingInfos"][0]["extractedText"], "As it is.\n\nReally.")

    def test_names_of_licenses_become_those_of_spdx(self):
        cases = {"Expat": "MIT", "GPL-2+": "GPL-2.0-or-later", "LGPL-2.1": "LGPL-2.1-only", "GPL-3.0+":
                 "GPL-3.0-or-later", "LGPL-3+ or GPL-2+": "LGPL-3.0-or-later OR GPL-2.0-or-later",
                 "BSD-3-clause": "BSD-3-Clause", "zlib": "Zlib", "public-domain": "LicenseRef-p-public-domain",
                 "GPL-2+ with Libtool exception": "LicenseRef-p-GPL-2-with-Libtool-exception"}
        for name, expected in cases.items():
            self.assertEqual(sbom.declared_license("p", f"{FORMAT}Files: *\nLicense: {name}\n")[0], expected)

    def test_what_violates_the_rules_is_found(self):
        def package(index, **fields):
            return lambda found: found["packages"][index].update(fields)
        cases = (
            (lambda found: found.update(spdxVersion="SPDX-2.2"), "spdxVersion is 'SPDX-2.2'"),
            (lambda found: found.update(documentNamespace="a b"), "documentNamespace is not a URI"),
            (lambda found: found["creationInfo"].update(created="today"), "created is not a UTC time"),
            (lambda found: found["creationInfo"].update(creators=[]), "creators is empty"),
            (lambda found: found.pop("hasExtractedLicensingInfos"), "the text of LicenseRef-nlohmann"),
            (package(1, versionInfo=""), "libhttpretry1: versionInfo is missing"),
            (package(1, supplier="A B"), "libhttpretry1: the supplier is neither"),
            (package(1, checksums=[{"algorithm": "MD5", "checksumValue": "0"}]), "libhttpretry1: bad checksum"),
            (package(1, SPDXID="SPDXRef-source"), "SPDXRef-source is used 2 times"),
            (package(1, SPDXID="x"), "'x' is not an SPDXID"),
            (package(4, externalRefs=[]), "libc6: neither a checksum nor a purl"),
            (lambda found: found["packages"][4]["externalRefs"][0].update(referenceLocator="pkg:deb/libc6"),
             "libc6: bad purl"),
            (lambda found: found["packages"].pop(4), "SPDXRef-libc6, which is no package"),
            (lambda found: found["relationships"][0].update(relationshipType="LIKES"), "LIKES is not a relationship"),
            (lambda found: found.update(relationships=[]), "no package links a library"))
        for change, sentence in cases:
            found = copy.deepcopy(self.document)
            change(found)
            self.assertTrue(any(sentence in problem for problem in sbom.problems(found)),
                            f"{sentence}: {sbom.problems(found)}")


if __name__ == "__main__":
    unittest.main()
