"""Makes the pages of the API from the public headers. Each header has a page, api/MODULE/HEADER.md."""

import html
import posixpath
import re


class Pages:
    """Writes the pages of Headers as Markdown. A link in a signature is HTML, because Markdown has none in code."""

    def __init__(self, headers, modules, pages):
        self.headers, self.comments = headers.headers, headers.comments
        self.modules = modules  # the name of each, and what it contains
        self.pages = pages  # of the repository, by path: those of the site
        self.by_name = {}
        for header, entries in self.headers.items():
            self.register(header, entries)

    def register(self, header, entries):
        for entry in entries:
            entry.header = header
            for name in entry.names:
                self.by_name.setdefault(entry.short.rpartition(entry.last_name)[0] + name, entry)
            self.register(header, entry.members)

    def write(self, folder):
        for header, entries in self.headers.items():
            write(folder / page_of(header), self.header_page(header, entries))
        modules = [module for module in self.modules if any(header.startswith(module + "/") for header in self.headers)]
        for module in modules:
            write(folder / f"api/{module}/README.md",
                  f"# {module}\n\n{self.modules[module]}\n\n{self.table_of_headers(module)}")
        rows = "".join(f"| [{module}]({module}/README.md) | {self.modules[module]} |\n" for module in modules)
        write(folder / "api/README.md",
              "# The API\n\nEvery name is in the namespace `httpretry`. `#include <httpretry/httpretry.hpp>` includes "
              "the common headers of the core.\n\n| module | what it is for |\n|---|---|\n"
              f"{rows}\n{self.table_of_headers('')}")

    def table_of_headers(self, module):
        rows = "".join(f"| [{posixpath.basename(header)}]({posixpath.basename(header)[:-4]}.md) | "
                       f"{self.names_on(header)} |\n"
                       for header in self.headers if posixpath.dirname(header) == module)
        return f"| header | what it declares |\n|---|---|\n{rows}"

    def names_on(self, header):
        names = list(dict.fromkeys(entry.last_name for entry in self.headers[header] if "<" not in entry.name))
        return ", ".join(f"`{name}`" for name in names) or first_sentence(self.comments[header])

    def header_page(self, header, entries):
        text = f"# {header}\n\n```cpp\n#include <httpretry/{header}>\n```\n\n"
        comment = self.comments[header]
        if comment and not (entries and entries[0].comment == comment):
            text += self.markdown(comment, "", header)
        return text + self.entries(entries, 2, header)

    def entries(self, entries, level, header):
        text, plain = "", []  # plain: fields that need no comment are shown together
        for entry in entries:
            if entry.kind == "variable" and level > 2 and not entry.comment:
                plain.append(entry)
                continue
            text += self.block(plain, header) + self.entry(entry, level, header)
            plain = []
        return text + self.block(plain, header)

    def entry(self, entry, level, header):
        text = ""
        if entry.kind != "variable" or level == 2:
            names = entry.names[:2] + ["…"] * (len(entry.names) > 2)
            title = entry.short if level == 2 else ", ".join(names)
            text += f"{'#' * min(level, 5)} `{title}` {{#{entry.anchor}}}\n\n"
        text += self.block([entry], header) + self.markdown(entry.comment, entry.short, header)
        if any(comment for _, comment in entry.values):
            text += "| value | meaning |\n|---|---|\n" + "".join(
                f"| `{name}` | {self.prose(' '.join(line.strip() for line in comment), entry.short, header)} |\n"
                for name, comment in entry.values) + "\n"
        elif entry.values:
            text += "Values: " + ", ".join(f"`{name}`" for name, _ in entry.values) + ".\n\n"
        # Fields first: they have no heading, and would seem to belong to the one before.
        members = sorted(entry.members, key=lambda member: member.kind != "variable")
        return text + self.entries(members, level + 1, header)

    def block(self, entries, header):
        """Shows declarations. Fields have their anchors here, because they have no heading."""
        lines = []
        for entry in entries:
            for code in entry.signatures:
                code = self.linked(code, entry, header)
                is_field = entry.kind == "variable" and entry.name.count("::") > 1
                lines.append(f'<span id="{entry.anchor}">{code}</span>' if is_field else code)
        return "<pre class=\"signature\">" + "\n".join(lines) + "</pre>\n\n" if lines else ""

    def linked(self, code, entry, header):
        """Escapes a declaration, and links the types in it."""
        def link(found):
            target = self.find(found[0], entry.short.rpartition("::")[0], header)
            if not target or target.kind in ("function", "variable") or target.line == entry.line:
                return found[0]
            return f'<a href="{self.href(target, header, ".html")}">{found[0]}</a>'
        return re.sub(r"(?<!std::)\b[A-Z]\w*[a-z](?:::[A-Z]\w*)*\b", link, html.escape(code))

    def href(self, entry, header, suffix):
        page = posixpath.relpath(page_of(entry.header), posixpath.dirname(page_of(header)))
        return f"{page[:-3]}{suffix}#{entry.anchor}"

    def markdown(self, comment, scope, header):
        """A comment as Markdown: paragraphs, lists, and code where a line is indented further."""
        result, paragraph, code, in_list = [], [], [], False

        def flush():
            if code:
                result.append("```cpp\n" + "\n".join(code).rstrip() + "\n```\n")
            if paragraph:
                result.append(self.prose(" ".join(paragraph), scope, header) + ("" if in_list else "\n"))
            paragraph.clear()
            code.clear()

        for line in comment + [""]:
            text = line[1:] if line.startswith(" ") else line
            if text.startswith("  ") and not in_list:
                if paragraph:
                    flush()
                code.append(text[2:])
                continue
            if not text.strip() and code:
                code.append("")
                continue
            if code or not text.strip() or text.startswith("* "):
                flush()
            if text.startswith("* ") != in_list and not text.startswith("  "):
                result.append("" if text.startswith("* ") else "\n")
                in_list = text.startswith("* ")
            if text.strip():
                paragraph.append(text.strip())
        flush()
        return "\n".join(result).strip("\n") + "\n\n" if result else ""

    def prose(self, text, scope, header):
        """Escapes what Markdown would take for markup, and links the names of the library."""
        parts = re.split(r"(`[^`]+`)", text)
        for index, part in enumerate(parts):
            if part.startswith("`"):
                parts[index] = self.name_link(part[1:-1], scope, header) or part
                continue
            mark = "* " if part.startswith("* ") else ""
            part = re.sub(r"([\\*<|\[])", r"\\\1", part[len(mark):]).replace(r"\<", "&lt;")
            parts[index] = mark + re.sub(
                r"[\w/.-]+\.(?:md|hpp)\b|\b([A-Z]\w*(?:::\w+)+|[A-Z][a-z]+[A-Z]\w*)(\(\))?",
                lambda found: (self.file_link(found[0], header) or self.name_link(found[0], scope, header)
                               or found[0]), part)
        return "".join(parts)

    def file_link(self, file, header):
        beside = posixpath.join(posixpath.dirname(header), file)
        path = next((page_of(name) for name in (beside, file) if name in self.headers), self.pages.get(file))
        return path and f"[{file}]({posixpath.relpath(path, posixpath.dirname(page_of(header)))})"

    def name_link(self, text, scope, header):
        name = text.removesuffix("()")
        entry = self.find(name, scope, header) or self.find(name.rpartition("::")[0], scope, header)
        known = entry and name.rpartition("::")[2] in entry.names + [value for value, _ in entry.values]
        # A short word such as `timeout` may be something else than the function of that name in another module.
        near = known and (re.search("[A-Z_]", name) or posixpath.dirname(entry.header) == posixpath.dirname(header))
        return f"[`{text}`]({self.href(entry, header, '.md')})" if near and entry.short != scope else None

    def find(self, name, scope, header):
        """Looks up a name on the page of a header as C++ does: in the scope, and then in those around it."""
        owners = scope.split("::") if scope else []
        prefixes = ["::".join(owners[:count]) + "::" for count in range(len(owners), 0, -1)]
        prefixes += ["batch::", ""] if header.startswith("batch/") else [""]
        return next((self.by_name[prefix + name] for prefix in prefixes if prefix + name in self.by_name), None)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def page_of(header):
    return f"api/{header[:-4]}.md"


def first_sentence(comment):
    return re.split(r"(?<=\.)\s", " ".join(line.strip() for line in comment))[0]
