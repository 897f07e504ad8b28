#!/usr/bin/env python3
"""Builds the documentation site: site_pages.py FOLDER

Collects the pages of the repository into FOLDER-source, adds those of the API, and runs mkdocs. Folders with files that
are not from an earlier build are an error. sections.txt says which page is in which section, and which pages are split
at their headings. README.md of a folder becomes index.html."""

import fnmatch
import json
import pathlib
import posixpath
import re
import shutil
import subprocess
import sys
import textwrap

import api_pages
from api_pages import write
from headers import INCLUDE, Headers

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FENCE = re.compile(r"(^```.*?^```[^\n]*$)", re.M | re.S)
LANGUAGES = {".cpp": "cpp", ".hpp": "cpp", ".json": "json", ".yml": "yaml", ".yaml": "yaml", ".cmake": "cmake"}
COPIED = (".svg", ".png", ".html")  # other files that pages link become pages that show them


class Page:
    """A page of the site: a page of the repository, or a part of one, with the parts split off from it."""

    def __init__(self, source, target, title, level=1):
        self.source, self.target, self.title, self.level = source, target, title, level
        self.text, self.parts = "", []


def repository_pages():
    found = list(ROOT.glob("*.md"))
    for folder in ("apps", "cmake", "lib", "tests"):
        found += (ROOT / folder).glob("**/*.md")
    return sorted(path.relative_to(ROOT).as_posix() for path in found)


def read_sections(pages):
    """Returns [(heading, [(page, level at which it is split, first word of its parts)])]. Exits if a page is in no
    section."""
    sections, left = [("", [("README.md", 0, "")])], set(pages) - {"README.md"}
    for line in (HERE / "sections.txt").read_text().splitlines():
        if line.startswith("["):
            sections.append((line.strip("[]"), []))
        elif line and not line.startswith("#"):
            pattern, level, word = re.fullmatch(r"(\S+)(?: +split (\d))?(?: as (.*))?", line).groups("")
            matching = [page for page in pages if page in left and matches(page, pattern)]
            sections[-1][1].extend((page, int(level or 0), word and word + " ") for page in matching)
            if pattern in ("api", "files"):  # generated
                sections[-1][1].append((pattern, 0, ""))
            left -= set(matching)
    if left:
        sys.exit("in no section of cmake/docs/sections.txt: " + ", ".join(sorted(left)))
    return sections


def matches(page, pattern):
    """Compares part by part, so that * matches no slash."""
    parts, patterns = page.split("/"), pattern.split("/")
    return len(parts) == len(patterns) and all(map(fnmatch.fnmatch, parts, patterns))


def headings(text):
    """Yields (level, title, anchor, text below it) for each heading. Anchors are those of GitHub."""
    pieces, used = [], {}
    for block in FENCE.split(text):
        for part in [block] if block.startswith("```") else re.split(r"(^#+ .*$)", block, flags=re.M):
            heading = re.fullmatch(r"(#+) (.*)", part)
            if heading:
                anchor = re.sub(r"[^\w\- ]", "", heading[2].lower()).replace(" ", "-")
                used[anchor] = used.get(anchor, 0) + 1
                anchor += f"-{used[anchor] - 1}" if used[anchor] > 1 else ""
                pieces.append((len(heading[1]), heading[2], anchor, []))
            elif pieces:
                pieces[-1][3].append(part)
    return [(level, title, anchor, "".join(body)) for level, title, anchor, body in pieces]


def split_page(source, split_level, word, anchors):
    """Returns a page with its parts, and notes where its anchors are: (source, anchor) -> (target, anchor there)."""
    text = (ROOT / source).read_text().split("\n---\nThe program writes this page")[0]
    top = page = None
    for level, title, anchor, body in headings(text):
        name = re.sub(r"[`\\]", "", title)
        if top is None:
            page = top = Page(source, f"{source[:-3]}/README.md" if split_level else source, name)
            anchors[source, ""] = (top.target, "")
        elif level <= split_level:
            page = Page(source, f"{source[:-3]}/{anchor}.md", word + name, level)
            (top.parts[-1] if level == 3 else top).parts.append(page)
            title = word + title
        shown = level - page.level + 1
        page.text += f"{'#' * shown} {title} {{#{anchor}}}\n{body}"
        anchors[source, anchor] = (page.target, "" if shown == 1 else anchor)
    return top


class Site:
    def __init__(self, folder):
        self.source = source_of(folder)
        self.repository_pages = repository_pages()
        self.sections = read_sections(self.repository_pages)
        self.anchors, self.files = {}, set()  # files: those that pages link
        self.pages = {source: split_page(source, level, word, self.anchors)
                      for _, entries in self.sections for source, level, word in entries if "." in source}
        self.headers = Headers(ROOT, xml_of(folder))

    def write(self):
        shutil.rmtree(self.source, ignore_errors=True)
        for page in self.pages.values():
            self.write_page(page)
        rows = re.findall(r"^\| ([\w, ]+) \| (.*) \|$", (ROOT / "lib/README.md").read_text(), re.M)
        modules = {name: about for names, about in rows for name in names.split(", ")}
        pages = {source: page.target for source, page in self.pages.items()}
        api_pages.Pages(self.headers, modules, pages).write(self.source)
        for file in sorted(self.files):
            self.write_file(file)

    def write_page(self, page):
        text = "".join(dedented(part) if part.startswith("```") else self.with_links(with_empty_lines(part), page)
                       for part in FENCE.split(page.text))
        start = posixpath.dirname(page.target)
        links = [f"]({posixpath.relpath(part.target, start)})" for part in page.parts]
        if not all(link in text for link in links):
            text += "\n" + "".join(f"* [{part.title}{link}\n" for part, link in zip(page.parts, links))
        write(self.source / page.target, text)
        for part in page.parts:
            self.write_page(part)

    def with_links(self, text, page):
        """Makes the links of a page lead to pages of the site, or to nothing if the site has no such page."""
        def rewritten(found):
            words, link, anchor = found.groups("")
            if found[0].startswith("`") or ":" in link:
                return found[0]
            file = posixpath.normpath(posixpath.join(posixpath.dirname(page.source), link)) if link else page.source
            if file in self.repository_pages and (file, anchor) not in self.anchors:
                sys.exit(f"{page.source} links to {file}#{anchor}, which does not exist")
            target, anchor = self.target_of(file, anchor)
            if not target:
                return words if words.startswith("`") else f"{words} (`{file}`)"
            link = posixpath.relpath(target, posixpath.dirname(page.target))
            return f"[{words}]({link}{'#' + anchor if anchor else ''})"
        code = r"`[^`\n]*`"
        return re.sub(code + r"|\[((?:[^\[\]]|\[\])*)\]\(([^)#\s]*)(?:#([^)\s]*))?\)", rewritten, text)

    def target_of(self, file, anchor):
        """Returns the page of the site for a file of the repository, with the anchor there."""
        if file in self.repository_pages:
            return self.anchors[file, anchor]
        if f"{file}/".startswith(INCLUDE):
            return api_pages.page_of(file[len(INCLUDE):]) if file.endswith(".hpp") else "api/README.md", ""
        if not (ROOT / file).is_file():
            return "", ""
        self.files.add(file)
        return file if file.endswith(COPIED) else f"files/{file}.md", ""

    def write_file(self, file):
        if file.endswith(COPIED):
            (self.source / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / file, self.source / file)
        else:
            language = LANGUAGES.get(pathlib.Path(file).suffix, "text")
            write(self.source / f"files/{file}.md",
                  f"# {file}\n\n````{language}\n{(ROOT / file).read_text().rstrip()}\n````\n")

    def navigation(self):
        generated = {"api": self.api_navigation(),
                     "files": [{"Source files": [{file: f"files/{file}.md"} for file in sorted(self.files)
                                                 if not file.endswith(COPIED)]}]}
        sections = {}
        for heading, entries in self.sections:
            section, _, group = heading.partition(" / ")
            items = []
            for source, _, _ in entries:
                items += generated[source] if source in generated else [navigation_of(self.pages[source])]
            if items:
                sections.setdefault(section, []).extend([{group: items}] if group else items)
        return [{"Start": "README.md"}] + [{name: items} for name, items in sections.items() if name]

    def api_navigation(self):
        modules = {}
        for header in self.headers.headers:
            item = {posixpath.basename(header): api_pages.page_of(header)}
            modules.setdefault(posixpath.dirname(header), []).append(item)
        return [{"Overview": "api/README.md"}] + modules.pop("") + [
            {module: [{"Overview": f"api/{module}/README.md"}] + items} for module, items in modules.items()]


def navigation_of(page):
    if not page.parts:
        return {page.title: page.target}
    return {page.title: [{"Overview": page.target}] + [navigation_of(part) for part in page.parts]}


def with_empty_lines(text):
    """Adds the empty line that Python-Markdown wants before a list."""
    return re.sub(r"^((?!\* |\d+\. |\s|$).*\n)(?=\* |1\. )", r"\1\n", text, flags=re.M)


def dedented(block):
    first, _, code = block.partition("\n")
    return first + "\n" + textwrap.dedent(code[:-3]) + "```"


def source_of(folder):
    return folder.with_name(folder.name + "-source")


def xml_of(folder):
    return folder.with_name(folder.name + "-xml")


def config_of(folder):
    return folder.with_name(folder.name + ".yml")


def claim(folder):
    """Exits if a build into the folder would replace files that are not from an earlier build. The configuration of
    mkdocs beside the folder marks an earlier build."""
    config = config_of(folder)
    mark = (HERE / "mkdocs.yml").read_text().splitlines(keepends=True)[0]
    if config.is_file() and config.read_text().startswith(mark):
        return
    for path in (config, folder, source_of(folder), xml_of(folder)):
        if path.is_file() or (path.is_dir() and any(path.iterdir())):
            sys.exit(f"{path} is not from an earlier build of the site; name another folder")
    write(config, mark)


def run_doxygen(xml):
    shutil.rmtree(xml, ignore_errors=True)
    xml.mkdir(parents=True)
    settings = (HERE / "Doxyfile").read_text() + f"OUTPUT_DIRECTORY = {xml}\n"
    subprocess.run(["doxygen", "-"], input=settings, text=True, cwd=ROOT, check=True)


def run_mkdocs(site, folder):
    config = (HERE / "mkdocs.yml").read_text().replace("@HERE@", str(HERE)).replace("@SOURCE@", site.source.name)
    config_file = config_of(folder)
    config_file.write_text(f"{config}site_dir: {folder.name}\nnav: {json.dumps(site.navigation())}\n")
    subprocess.run(["mkdocs", "build", "--quiet", "--clean", "--config-file", config_file], check=True)
    (folder / "404.html").unlink()  # it is for a server: its links begin at the root


def finish_search(folder):
    """Takes the sources out of the index. Adds it as a script, because a page that is opened as a file can load no JSON
    (theme/main.html)."""
    index = json.loads((folder / "search/search_index.json").read_text())
    index["docs"] = [entry for entry in index["docs"] if not entry["location"].startswith("files/")]
    write(folder / "search/search_index.json", json.dumps(index))
    write(folder / "search/search_index.js", f"var __index = {json.dumps(index)};\n")


def build(folder):
    claim(folder)
    run_doxygen(xml_of(folder))
    site = Site(folder)
    site.write()
    shutil.copy(HERE / "site.css", site.source)
    run_mkdocs(site, folder)
    finish_search(folder)


if __name__ == "__main__":
    build(pathlib.Path(sys.argv[1]).resolve())
