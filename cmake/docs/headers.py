"""Reads the public headers: their declarations from Doxygen's XML, their comments from the headers themselves."""

import re
import xml.etree.ElementTree as ET

INCLUDE = "include/httpretry/"
# The members that a user calls without reading about them, or that only templates of the standard library use.
SELF_EXPLANATORY = re.compile(
    r"operator.*|~.*|begin|end|size|empty|what|has_value|get_return_object|await_.*|promise_type|.*_type"
    r"|iterator_category|pointer|reference|front|back|clear")


class Entry:
    """A declaration, or several overloads of one name. `members` are those of a class, `values` those of an enum."""

    def __init__(self, name, kind, line):
        self.name, self.kind, self.line = name, kind, line
        self.comment, self.signatures, self.members, self.values = "", [], [], []
        self.header, self.hidden, self.suffix = "", False, ""

    @property
    def short(self):
        return re.sub(r"^httpretry::|(?<=<) | (?=>)", "", self.name)

    @property
    def last_name(self):
        return re.split(r"::(?![^<]*>)", self.name.replace("->", "-"))[-1].replace("operator-", "operator->")

    @property
    def anchor(self):
        return re.sub(r"[^\w.~]+", "-", self.short.replace("::", ".")).strip("-") + self.suffix


def comment_at(lines, number):
    """Returns the comment above a declaration or behind it, without the slashes."""
    first = number - 1  # where the declaration begins: a template header or a return type may stand above its name
    while (first > 0 and re.match(r"\s*[^\s/]", lines[first - 1])
           and not re.search(r"[;{}:,]\s*(//.*)?$", lines[first - 1])):
        first -= 1
    indent = re.match(r" *", lines[first])[0]
    above = first
    while above > 0 and re.match(rf"{indent}//(?! NOLINT)", lines[above - 1]):
        above -= 1
    if above < first:
        return [line.strip()[2:] for line in lines[above:first]]
    return trailing_comment(lines, first)


def trailing_comment(lines, first):
    """Returns the comment behind a declaration, which may go on below itself."""
    last = first
    while last < len(lines) - 1 and not re.search(r"[;{},]\s*(//.*)?$", lines[last]):
        last += 1
    found = re.search(r"\S.*?(//(?! NOLINT).*)$", lines[last])
    if not found:
        return []
    comment, column = [found[1][2:]], found.start(1)
    while re.match(rf" {{{column}}}//", lines[last + 1]):
        last += 1
        comment.append(lines[last].strip()[2:])
    return comment


def enum_values(lines, first, last):
    """Returns (name, comment) for each enumerator."""
    values = []
    for number in range(first, last + 1):
        found = re.match(r"\s*(\w+)(?: = [^,]+)?,?\s*(?://.*)?$", lines[number - 1])
        names = [found[1]] if found else []
        if "enum " in lines[number - 1] and "{" in lines[number - 1]:
            names = re.findall(r"(\w+)(?: = [^,}]+)?(?=[,} ]|$)", lines[number - 1].split("{")[1].split("}")[0])
        values += [(name, [] if len(names) > 1 else comment_at(lines, number)) for name in names]
    return values


def text_of(element):
    """Returns the text of an element of the XML, spaced as the headers are."""
    text = "".join(element.itertext()).strip() if element is not None else ""
    return re.sub(r"\bhttpretry::|(?<=<) | (?=[>&*])", "", text)


def declarations(params):
    """Returns the text of each parameter of a function or of a template."""
    result = []
    for param in params:
        default = text_of(param.find("defval"))
        result.append(f"{text_of(param.find('type'))} {param.findtext('declname', '')}".strip()
                      + (f" = {default}" if default else ""))
    return result


def template_of(node):
    params = declarations(node.findall("templateparamlist/param"))
    return f"template <{', '.join(params)}>\n" if params else ""


def parameters_of(member):
    params = declarations(member.findall("param"))
    text = ", ".join(params)
    return f"({text})" if len(text) < 70 or len(params) < 2 else "(\n    " + ",\n    ".join(params) + ")"


def signature(member):
    kind, name, type_text = member.get("kind"), member.findtext("name"), text_of(member.find("type"))
    template = template_of(member)
    if kind == "typedef":
        return f"{template}using {name} = {type_text}"
    words = [word for word, there in (("static", member.get("static") == "yes"),
                                      ("explicit", member.get("explicit") == "yes"),
                                      ("virtual", member.get("virt", "non-virtual") != "non-virtual")) if there]
    start = template + " ".join(words + [type_text] * bool(type_text) + [name])
    arguments = member.findtext("argsstring") or ""
    if kind == "variable":
        value = text_of(member.find("initializer"))
        return start + arguments + (" " if value.startswith("=") else "") + value
    end = arguments[arguments.rfind(")") + 1:]
    return start + parameters_of(member) + re.sub(r"(?<=&)(?=\w)|(?==0)", " ", re.sub(" ?= ?default", "", end))


def is_hidden(member, comment):
    """True for members that no user calls by name, if the header says nothing about them."""
    name, arguments = member.find("name").text, member.findtext("argsstring") or ""
    owner = (member.findtext("qualifiedname") or "").split("::")[-2:-1]
    constructor = [name] == owner and re.match(rf"\((const )?({name} ?&&?.*|)\)", arguments)
    return ("=delete" in arguments.replace(" ", "") or member.get("kind") == "friend"
            or not comment and bool(constructor or SELF_EXPLANATORY.fullmatch(name)
                                or re.search("override|final", arguments)))


class Headers:
    """All public declarations. `headers` maps the path of a header to its entries, `comments` to its first comment."""

    def __init__(self, root, xml):
        self.root, self.headers, self.comments, self.sources = root, {}, {}, {}
        for path in sorted((root / INCLUDE).rglob("*.hpp")):
            name = path.relative_to(root / INCLUDE).as_posix()
            lines = path.read_text().splitlines() + [""]
            self.sources[name] = lines
            if "detail" not in path.parts and name != "export.hpp":
                self.headers[name] = []
                self.comments[name] = [line[2:] for line in lines[:next(
                    i for i, line in enumerate(lines) if not line.startswith("//"))]]
        compounds = [ET.parse(path).getroot().find("compounddef") for path in sorted(xml.glob("*.xml"))
                     if path.name.startswith(("class", "struct", "namespace", "concept"))]
        classes = {}
        for node in compounds:
            if node is not None and node.get("kind") in ("class", "struct", "concept"):
                self.add_class(node, classes)
        for node in compounds:
            if node is not None and node.get("kind") == "namespace":
                for member in node.iter("memberdef"):
                    self.add_member(member, None)
        for entry in classes.values():
            owner = classes.get(entry.name.rpartition("::")[0]) if "<" not in entry.name else None
            (owner.members if owner else self.headers[entry.header]).append(entry)
        for name, entries in self.headers.items():
            self.headers[name] = self.merged(sorted(entries, key=lambda entry: entry.line), name)
        for entry in classes.values():
            entry.members = self.merged(sorted(entry.members, key=lambda entry: entry.line), entry.header)

    def location(self, node):
        place = node.find("location")
        file = (place.get("declfile") or place.get("file")) if place is not None else ""
        line = int(place.get("declline") or place.get("line")) if place is not None else 0
        file = file.rpartition(INCLUDE)[2]
        return (file, line) if file in self.headers else (None, 0)

    def add_class(self, node, classes):
        header, line = self.location(node)
        name = node.findtext("compoundname").replace("< ", "<").replace(" >", ">")
        # Doxygen 1.9.8 calls some classes private that are not in another class.
        if not header or (node.get("prot") == "private" and re.search(r"::[A-Z]\w*::", name)):
            return
        entry = Entry(name, node.get("kind"), line)
        entry.header, entry.comment = header, comment_at(self.sources[header], line)
        if node.get("kind") == "concept":
            entry.signatures = [text_of(node.find("initializer"))]
        else:
            bases = [text_of(base) for base in node.findall("basecompoundref") if "detail" not in text_of(base)]
            entry.signatures = [f"{template_of(node)}{entry.kind} {entry.last_name}" + " : ".join([""] + bases)]
        classes[name] = entry
        for section in node.findall("sectiondef"):
            for member in section.findall("memberdef"):
                if member.get("prot") == "public":
                    self.add_member(member, entry)

    def add_member(self, member, owner):
        header, line = self.location(member)
        if not header or "detail::" in (member.findtext("qualifiedname") or ""):
            return
        lines = self.sources[header]
        if re.match(r"\s*using \w+::\w+;", lines[line - 1]):  # inherits constructors
            return
        comment = comment_at(lines, line)
        name = member.findtext("qualifiedname") or member.findtext("name")
        entry = Entry(name, member.get("kind"), line)
        entry.header, entry.comment, entry.hidden = header, comment, is_hidden(member, comment)
        if entry.kind == "enum":
            entry.signatures = [f"enum class {entry.last_name}"]
            entry.values = enum_values(lines, line, int(member.find("location").get("bodyend")))
        else:
            entry.signatures = [signature(member)]
        (owner.members if owner else self.headers[header]).append(entry)

    def merged(self, entries, header):
        """Joins overloads. A declaration right below another one shares that one's comment if it has the same name, if
        the comment names it in backticks, or if the verb of the comment is a plural ("Return the …")."""
        result = []
        for entry in entries:
            before = result[-1] if result else None
            between = self.sources[header][before.last_line:entry.line - 1] if before else []
            adjacent = before is not None and before.hidden <= entry.hidden and all(line.strip() for line in between)
            if adjacent and not entry.comment and not entry.members and not before.members and (
                    entry.last_name == before.last_name or is_plural(before.comment)
                    or f"`{entry.last_name}`" in " ".join(before.comment)):
                before.signatures += entry.signatures
                before.last_line = entry.line
                before.names += [entry.last_name] if entry.last_name not in before.names else []
                continue
            entry.last_line, entry.names = entry.line, [entry.last_name]
            same = sum(other.last_name == entry.last_name for other in result)
            entry.suffix = f"-{same + 1}" if same else ""
            result.append(entry)
        return [entry for entry in result if not entry.hidden]

    def undocumented(self):
        """Yields the declarations that no comment explains. A constructor needs none, nor does a field that is named
        after its type: Timings timings."""
        def walk(entries, owner):
            for entry in entries:
                name = entry.last_name
                named_after_type = entry.kind == "variable" and re.search(
                    rf"\b{name.replace('_', '')}(policy)?[>*&]* {name}\b", entry.signatures[0], re.I)
                if not entry.comment and entry.last_name != owner.partition("<")[0] and not named_after_type:
                    yield entry
                yield from walk(entry.members, entry.last_name)
        for entries in self.headers.values():
            yield from walk(entries, "")


def is_plural(comment):
    """Whether a comment is about several declarations: "Return the ..."."""
    words = " ".join(comment).split()
    return bool(words) and (words[0] in ("Return", "Set", "Call", "Add", "Send", "Force", "Wait", "Each")
                            or " ".join(words[:2]) in ("The setters", "The functions"))
