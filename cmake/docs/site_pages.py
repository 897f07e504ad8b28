#!/usr/bin/env python3
"""Builds the documentation site: site_pages.py FOLDER

Collects the pages of the repository into FOLDER-source, adds those of the API, and runs mkdocs. sections.txt says which
page is in which section, and which pages are split at their headings. README.md of a folder becomes index.html."""

import fnmatch
import json
import pathlib
import posixpath
import re
import shutil
import subprocess
import sys

import api

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FENCE = re.compile(r"(^```.*?^```[^\n]*$)", re.M | re.S)
LANGUAGES = {".cpp": "cpp", ".hpp": "cpp", ".json": "json", ".yml": "yaml", ".yaml": "yaml", ".py": "python",
             ".cmake": "cmake"}
PICTURES = (".svg", ".png", ".html")


def repository_pages():
    folders = ("apps", "cmake", "lib", "tests")
    found = list(ROOT.glob("*.md")) + [path for name in folders for path in (ROOT / name).glob("**/*.md")]
    return sorted(path.relative_to(ROOT).as_posix() for path in found)


def read_sections(pages):
    """Returns [(heading, [(page, level at which it is split, or 0)])]. Exits if a page is in no section."""
    sections, left = [], set(pages) - {"README.md"}
    for line in (HERE / "sections.txt").read_text().splitlines():
        if line.startswith("["):
            sections.append((line.strip("[]"), []))
        elif line.strip() and not line.startswith("#"):
            pattern, _, level = line.partition(" split ")
            matching = [page for page in pages if page in left and matches(page, pattern.strip())]
            if pattern.strip() == "api":
                matching = ["api"]
            sections[-1][1].extend((page, int(level or 0)) for page in matching)
            left -= set(matching)
    if left:
        sys.exit("in no section of cmake/docs/sections.txt: " + ", ".join(sorted(left)))
    return sections


def matches(page, pattern):
    """Compares part by part, so that * matches no slash."""
    parts, patterns = page.split("/"), pattern.split("/")
    return len(parts) == len(patterns) and all(map(fnmatch.fnmatch, parts, patterns))


def slug(heading):
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


class Page:
    """A page of the site: a page of the repository, or a part of one. `children` are parts of it."""

    def __init__(self, source, target, title, level=1):
        self.source, self.target, self.title, self.level = source, target, title, level
        self.text, self.children = "", []


def headings_with_anchors(text):
    """Yields (level, title, anchor, text up to the next heading). Lines in code are no headings."""
    pieces, used = [(0, "", "", [])], {}
    for block in FENCE.split(text):
        if block.startswith("```"):
            pieces[-1][3].append(block)
            continue
        for part in re.split(r"(^#+ .*$)", block, flags=re.M):
            heading = re.fullmatch(r"(#+) (.*)", part)
            if not heading:
                pieces[-1][3].append(part)
                continue
            anchor = slug(heading[2])
            used[anchor] = used.get(anchor, 0) + 1
            anchor += f"-{used[anchor] - 1}" if used[anchor] > 1 else ""
            pieces.append((len(heading[1]), heading[2], anchor, []))
    return [(level, title, anchor, "".join(body)) for level, title, anchor, body in pieces]


class Site:
    def __init__(self, folder):
        self.folder, self.source = folder, folder.with_name(folder.name + "-source")
        self.pages = repository_pages()
        self.sections = read_sections(self.pages)
        self.anchors = {}  # (page of the repository, anchor) -> (page of the site, anchor)
        self.files = set()  # the sources that pages link
        shutil.rmtree(self.source, ignore_errors=True)
        self.source.mkdir(parents=True)

    def split(self, source, level):
        """Returns the page, with a child for each heading up to that level."""
        stem = source[:-3]
        top = None
        for depth, title, anchor, body in headings_with_anchors((ROOT / source).read_text()):
            if depth == 0:
                continue
            if top is None:
                page = top = Page(source, source if not level else f"{stem}/README.md", plain(title))
            elif depth <= level:
                page = Page(source, f"{stem}/{anchor}.md", plain(title), depth)
                owner = top.children[-1] if depth == 3 else top
                owner.children.append(page)
            shown = depth - page.level + 1
            page.text += f"{'#' * shown} {title} {{#{anchor}}}\n{body}"
            self.anchors[source, anchor] = (page.target, "" if shown == 1 else anchor)
            self.anchors.setdefault((source, ""), (top.target, ""))
        return top

    def write(self):
        pages = {source: self.split(source, level) for _, entries in self.sections for source, level in entries
                 if source != "api"}
        pages["README.md"] = self.split("README.md", 0)
        for page in pages.values():
            self.write_page(page)
        headers = api.Api(ROOT, xml_of(self.folder))
        rows = re.findall(r"^\| ([\w, ]+) \| (.*) \|$", (ROOT / "lib/README.md").read_text(), re.M)
        modules = {name: about for names, about in rows for name in names.split(", ")}
        api.Pages(headers, modules).write(self.source)
        for file in sorted(self.files):
            self.write_file(file)
        return pages, headers

    def write_page(self, page):
        text = "".join(part if part.startswith("```") else self.links(part, page)
                       for part in FENCE.split(spaced(page.text)))
        if page.children:
            text += "\n" + self.contents(page)
        target = self.source / page.target
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        for child in page.children:
            self.write_page(child)

    def contents(self, page):
        """A list of the parts of a page, unless its text links to all of them."""
        start = posixpath.dirname(page.target)
        return "\n".join(f"* [{child.title}]({posixpath.relpath(child.target, start)})" for child in page.children) + "\n"

    def links(self, text, page):
        def rewritten(found):
            words, link, anchor = found[1], found[2], found[3] or ""
            if re.match(r"[a-z]+:", link):
                return found[0]
            file = posixpath.normpath(posixpath.join(posixpath.dirname(page.source), link)) if link else page.source
            target = self.target_of(file, anchor)
            if not target:
                return words if words.startswith(("`", "!")) else f"{words} (`{file}`)"
            start = posixpath.dirname(page.target)
            return f"[{words}]({posixpath.relpath(target[0], start)}{'#' + target[1] if target[1] else ''})"
        return re.sub(r"(?<!`)\[((?:[^\[\]]|\[\])*)\]\(([^)#\s]*)(?:#([^)\s]*))?\)", rewritten, text)

    def target_of(self, file, anchor):
        """Returns (page, anchor) of the site for a link to a file of the repository, or None for a plain name."""
        if file in self.pages:
            target = self.anchors_of(file).get((file, anchor))
            if not target:
                sys.exit(f"a page links to {file}#{anchor}, which does not exist")
            return target
        if file.startswith(api.INCLUDE.rstrip("/")):
            rest = file[len(api.INCLUDE):]
            return (api.page_of(rest) if rest.endswith(".hpp") else posixpath.join("api", rest, "README.md"), "")
        if not (ROOT / file).is_file():
            return None
        self.files.add(file)
        return (file if file.endswith(PICTURES) else f"files/{file}.md", "")

    def anchors_of(self, file):
        if (file, "") not in self.anchors:
            level = dict(entry for _, entries in self.sections for entry in entries).get(file, 0)
            self.split(file, level)
        return self.anchors

    def write_file(self, file):
        """A picture is copied; a source becomes a page that shows it."""
        target = self.source / (file if file.endswith(PICTURES) else f"files/{file}.md")
        target.parent.mkdir(parents=True, exist_ok=True)
        if file.endswith(PICTURES):
            shutil.copy(ROOT / file, target)
            return
        language = LANGUAGES.get(pathlib.Path(file).suffix, "text")
        target.write_text(f"# {file}\n\n````{language}\n{(ROOT / file).read_text().rstrip()}\n````\n")

    def navigation(self, pages, headers):
        top = {"Start": "README.md"}
        for heading, entries in self.sections:
            section, _, group = heading.partition(" / ")
            items = []
            for source, _ in entries:
                items += api_navigation(headers) if source == "api" else [nav_of(pages[source])]
            if group == "The project":
                items.append({"Source files": [{file: f"files/{file}.md"} for file in sorted(self.files)
                                               if not file.endswith(PICTURES)]})
            if items:
                top.setdefault(section, []).extend([{group: items}] if group else items)
        return [{name: items} for name, items in top.items()]


def spaced(text):
    """Python-Markdown wants an empty line before a list, and four spaces before what belongs to an item."""
    parts = FENCE.split(text)
    for index, part in enumerate(parts):
        if not part.startswith("```"):
            parts[index] = re.sub(r"^((?!\* |\d+\. |\s|$).*\n)(?=\* |1\. )", r"\1\n", part, flags=re.M)
    return "".join(parts)


def plain(title):
    return title.replace("`", "").replace("\\", "")


def nav_of(page):
    if not page.children:
        return {page.title: page.target}
    return {page.title: [{"Overview": page.target}] + [nav_of(child) for child in page.children]}


def api_navigation(headers):
    modules = {}
    for header in headers.headers:
        modules.setdefault(posixpath.dirname(header), []).append({posixpath.basename(header): api.page_of(header)})
    roots = modules.pop("", [])
    return [{"Overview": "api/README.md"}] + roots + [
        {module: [{"Overview": f"api/{module}/README.md"}] + items} for module, items in sorted(modules.items())]


def make_offline_search(folder):
    """The search of a page that is opened as a file cannot load JSON, but it can load a script (theme/main.html)."""
    index = (folder / "search/search_index.json").read_text()
    (folder / "search/search_index.js").write_text(f"var __index = {index};\n")


def xml_of(folder):
    return folder.with_name(folder.name + "-xml")


def build(folder):
    folder.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(xml_of(folder), ignore_errors=True)
    xml_of(folder).mkdir()
    settings = (HERE / "Doxyfile").read_text() + f"OUTPUT_DIRECTORY = {xml_of(folder)}\n"
    subprocess.run(["doxygen", "-"], input=settings, text=True, cwd=ROOT, check=True)
    site = Site(folder)
    pages, headers = site.write()
    shutil.copy(HERE / "site.css", site.source)
    config = (HERE / "mkdocs.yml").read_text().replace("@HERE@", str(HERE))
    config += f"site_dir: {folder.name}\nnav: {json.dumps(site.navigation(pages, headers))}\n"
    config_file = folder.with_name(folder.name + ".yml")
    config_file.write_text(config.replace("docs-source", site.source.name))
    subprocess.run(["mkdocs", "build", "--quiet", "--clean", "--config-file", config_file], check=True)
    make_offline_search(folder)
    (folder / "404.html").unlink()  # it is for a server, and its links begin at the root


if __name__ == "__main__":
    build(pathlib.Path(sys.argv[1]).resolve())
