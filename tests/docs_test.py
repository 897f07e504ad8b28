#!/usr/bin/env python3
"""Builds the documentation site, and checks it: no broken link or anchor, nothing from another server, every page in a
section and reachable, every public name of the headers with a comment. Usage: docs_test.py FOLDER"""

import fnmatch
import pathlib
import posixpath
import re
import shutil
import sys
import tempfile
import unittest
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "cmake/docs"))
import site_pages as site  # noqa: E402


def read_pages(folder):
    """Returns {path: (links, ids)} of the pages of a site."""
    pages = {}
    for path in folder.rglob("*.html"):
        text = path.read_text()
        links = re.findall(r'<(?:a|link|script|img|iframe)\b[^>]*?\b(?:href|src)="?([^"\s>]+)', text)
        pages[path.relative_to(folder).as_posix()] = (links, set(re.findall(r'\bid="?([^"\s>]+)', text)))
    return pages


def target_of(page, link):
    """Returns (path, anchor) within the site, or None for a link to another server."""
    parts = urllib.parse.urlsplit(link)
    if parts.scheme or parts.netloc:
        return None
    path = posixpath.normpath(posixpath.join(posixpath.dirname(page), urllib.parse.unquote(parts.path)))
    return (path if parts.path else page, urllib.parse.unquote(parts.fragment))


def broken_links(folder, pages):
    for page, (links, _) in sorted(pages.items()):
        for link in links:
            target = target_of(page, link)
            if target is None:
                continue
            path, anchor = target
            if not (folder / path).is_file() and path not in (".", "index.html"):
                yield f"{page} links to {path}, which does not exist"
            elif anchor and path in pages and anchor not in pages[path][1]:
                yield f"{page} links to {path}#{anchor}, which does not exist"


def reachable(pages):
    found, todo = {"index.html"}, ["index.html"]
    while todo:
        page = todo.pop()
        for target in filter(None, (target_of(page, link) for link in pages[page][0])):
            if target[0] in pages and target[0] not in found:
                found.add(target[0])
                todo.append(target[0])
    return found


def explains(pattern, entry):
    """Whether a pattern of self_explanatory.txt is for a declaration."""
    return fnmatch.fnmatchcase(entry.short, pattern) and (entry.kind == "variable" or not pattern.startswith("*"))


class Docs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        site.build(FOLDER)
        cls.pages = read_pages(FOLDER)

    def test_every_link_leads_somewhere(self):
        self.assertGreater(len(self.pages), 200)
        self.assertEqual(list(broken_links(FOLDER, self.pages)), [])

    def test_a_name_leads_to_the_declaration_that_the_compiler_would_find(self):
        # `State` on this page is Call::State, which has no entry, and not batch::State.
        links = [link for link in self.pages["api/chain/call.html"][0] if "#" in link]
        self.assertTrue(any("scheduler.html#Scheduler" in link for link in links), links)
        self.assertFalse([link for link in links if "batch" in link])

    def test_every_page_is_reachable(self):
        # A picture of the simulator is a page without links.
        self.assertEqual(sorted(set(self.pages) - reachable(self.pages)), [])

    def test_nothing_is_loaded_from_another_server(self):
        for path in FOLDER.rglob("*"):
            if path.suffix in (".html", ".css"):
                loaded = re.findall(r'(?:<script[^>]*src=|<link[^>]*stylesheet[^>]*href=|<img[^>]*src=|url\()"?'
                                    r'((?:https?:)?//[^"\s)>]+)', path.read_text())
                self.assertEqual(loaded, [], path)

    def test_every_public_name_has_a_comment(self):
        lines = (ROOT / "cmake/docs/self_explanatory.txt").read_text().splitlines()
        patterns = [word for line in lines if not line.startswith("#") for word in line.split()]
        found = list(site.Headers(ROOT, site.xml_of(FOLDER)).undocumented())
        missing = [f"include/httpretry/{entry.header}:{entry.line}: {entry.short}" for entry in found
                   if not any(explains(pattern, entry) for pattern in patterns)]
        self.assertEqual(missing, [], "add a comment, or a line in cmake/docs/self_explanatory.txt")
        unused = [pattern for pattern in patterns if not any(explains(pattern, entry) for entry in found)]
        self.assertEqual(unused, [], "these match nothing")


class Checks(unittest.TestCase):
    def test_every_error_code_and_exit_status_has_a_section(self):
        header = (ROOT / "include/httpretry/http/result.hpp").read_text()
        values = re.findall(r"^  (\w+),", re.search(r"enum class Errc .*?\{(.*?)\};", header, re.S)[1], re.M)
        words = [re.sub(r"(?<!^)([A-Z])", r"_\1", value).lower() for value in values]
        self.assertEqual(re.findall(r"^## `(\w+)`$", (ROOT / "lib/core/http/errors.md").read_text(), re.M), words)
        table = (ROOT / "apps/httpretry/manual.md").read_text().split("## Exit status\n")[1].split("\n## ")[0]
        listed = re.findall(r"^\| `([^`]+)` \|", table, re.M)
        statuses = {status for cell in listed if cell != "1 to 99" for status in cell.split(", ")}
        page = (ROOT / "apps/httpretry/exit-status.md").read_text()
        sections = set(re.findall(r"^## Exit status (\d.*)$", page, re.M))
        self.assertEqual(sorted(statuses - sections), [])

    def test_a_page_in_no_section_is_an_error(self):
        with self.assertRaisesRegex(SystemExit, "in no section of cmake/docs/sections.txt: tests/new.md"):
            site.read_sections(["README.md", "CHANGELOG.md", "tests/new.md"])

    def test_a_folder_with_other_files_is_not_replaced(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name) / "site"
            for other in ("site.yml", "site/mine", "site-source/mine", "site-xml/mine"):
                path = folder.parent / other
                path.parent.mkdir(exist_ok=True)
                path.write_text("mine")
                with self.assertRaisesRegex(SystemExit, "is not from an earlier build of the site"):
                    site.build(folder)
                self.assertEqual(path.read_text(), "mine")
                path.unlink()
            site.claim(folder)
            (folder / "index.html").write_text("")
            site.claim(folder)  # its own

    def test_broken_links_and_pages_without_a_way_are_found(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "index.html").write_text('<a href="a.html#x">1</a><a href="b.html">2</a><a href="#y">3</a>')
            (folder / "a.html").write_text('<h1 id="y">')
            (folder / "alone.html").write_text("")
            pages = read_pages(folder)
            self.assertEqual(list(broken_links(folder, pages)),
                             ["index.html links to a.html#x, which does not exist",
                              "index.html links to b.html, which does not exist",
                              "index.html links to index.html#y, which does not exist"])
            self.assertEqual(reachable(pages), {"index.html", "a.html"})


if __name__ == "__main__":
    for program in ("doxygen", "mkdocs"):
        if not shutil.which(program):
            print(f"skipped: this system has no {program}")
            sys.exit(77)
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    FOLDER = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
