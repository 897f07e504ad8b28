#!/usr/bin/env python3
"""Writes and checks lists of the software in our Debian packages (SBOM), in SPDX 2.3 as JSON.

  sbom.py make --source ARCHIVE --build FOLDER --output FILE DEB...
  sbom.py check FILE...
  sbom.py packages PROGRAM...    the Debian packages of the libraries that the programs link

`make` runs in the root where the packages were built. It reads what their programs and libraries link, and which
headers the compiler read: code of a library that consists of headers is in our binaries."""

import argparse
import collections
import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.parse

LINKS, BUILT_WITH = "DYNAMIC_LINK", "BUILD_DEPENDENCY_OF"
# Debian's names of licenses (https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/) that are not
# SPDX's, in lower case.
SPDX_LICENSES = {name.lower(): name for name in (
    "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0", "curl", "ISC", "MIT", "MPL-2.0", "OLDAP-2.8",
    "X11", "Zlib")} | {"expat": "MIT"}


# --- from facts to a document; nothing here looks at the system ---

def paragraphs(text):
    """Returns the fields of each paragraph of a Debian control file."""
    found = []
    for block in re.split(r"\n[ \t]*\n", text.strip()):
        fields = {}
        for match in re.finditer(r"^([A-Za-z-]+):[ \t]*((?:.*)(?:\n[ \t].*)*)", block, re.M):
            fields[match[1].lower()] = match[2].strip()
        found.append(fields)
    return found


def spdx_license(name):
    """Returns SPDX's identifier of a license that Debian names, or None."""
    gnu = re.fullmatch(r"([AL]?GPL)-(\d)(\.\d)?(\+?)", name, re.I)
    if gnu:
        return f"{gnu[1].upper()}-{gnu[2]}{gnu[3] or '.0'}-{'or-later' if gnu[4] else 'only'}"
    return SPDX_LICENSES.get(name.lower())


def declared_license(package, text):
    """Returns (license, copyright, {LicenseRef: text}) from a copyright file, as SPDX wants them.

    The license is that of `Files: *`. A file that is not machine-readable, or has no such paragraph, says nothing."""
    blocks = paragraphs(text)
    if not re.search(r"copyright-format|dep-?5", blocks[0].get("format", ""), re.I):
        return "NOASSERTION", "NOASSERTION", {}
    main = next((block for block in blocks if block.get("files") == "*" and block.get("license")), None)
    if main is None:
        return "NOASSERTION", "NOASSERTION", {}
    expression = main["license"].split("\n")[0].strip()
    copyright_text = re.sub(r"\n[ \t]+", "\n", main.get("copyright", "")) or "NOASSERTION"
    words = re.split(r"\s+(and|or)\s+", expression, flags=re.I)
    names = [spdx_license(word) for word in words[::2]]
    if all(names):
        words[::2] = names
        return " ".join(word.upper() if word.lower() in ("and", "or") else word for word in words), copyright_text, {}
    # SPDX has no name for it, so the document contains its text.
    texts = [block["license"].partition("\n")[2] for block in [main, *blocks]
             if block.get("license", "").split("\n")[0].strip() == expression]
    reference = "LicenseRef-" + re.sub(r"[^A-Za-z0-9.]+", "-", f"{package}-{expression}").strip("-")
    body = next((re.sub(r"^[ \t]\.?", "", part, flags=re.M) for part in texts if part.strip()), expression)
    return reference, copyright_text, {reference: body}


def purl(name, version, architecture, release):
    version = urllib.parse.quote(version, safe="")
    return f"pkg:deb/debian/{urllib.parse.quote(name)}@{version}?arch={architecture}&distro=debian-{release}"


def identifier(name):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", lambda match: f"-{ord(match[0]):x}-", name)


def document(facts):
    """Returns the SPDX document of `facts`: release, created, source, ours, others (see collect())."""
    texts = {}
    source = facts["source"]
    packages = [{
        "SPDXID": "SPDXRef-source", "name": "httpretry", "versionInfo": source["version"],
        "packageFileName": source["file"], "checksums": [{"algorithm": "SHA256", "checksumValue": source["sha256"]}]}]
    relationships = [("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-source")]
    for ours, package in [(True, one) for one in facts["ours"]] + [(False, one) for one in facts["others"]]:
        me = identifier(package["name"])
        license_, copyright_text, more = declared_license(package["name"], package["copyright"])
        texts.update(more)
        entry = {"SPDXID": me, "name": package["name"], "versionInfo": package["version"],
                 "licenseDeclared": license_, "copyrightText": copyright_text}
        if license_ != "NOASSERTION":
            entry["licenseComments"] = ("The license of 'Files: *' in the copyright file of the source package. Other "
                                        "files, such as those of a library, may have another license.")
        maintainer = re.sub(r"\s*<([^>]*)>", r" (\1)", package["maintainer"])
        entry["supplier"] = f"Organization: {maintainer if ours else 'Debian'}"
        if ours:
            entry["packageFileName"] = package["file"]
            entry["checksums"] = [{"algorithm": "SHA256", "checksumValue": package["sha256"]}]
            relationships.append(("SPDXRef-DOCUMENT", "DESCRIBES", me))
            relationships.append((me, "GENERATED_FROM", "SPDXRef-source"))
        else:
            entry["sourceInfo"] = f"built from Debian's source package {package['source']}"
            entry["comment"] = f"Maintainer in Debian: {maintainer}"
            entry["externalRefs"] = [{
                "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                "referenceLocator": purl(package["name"], package["version"], package["architecture"],
                                         facts["release"])}]
            if package.get("homepage"):
                entry["homepage"] = package["homepage"]
        packages.append(entry)
        relationships += [(me, LINKS, identifier(other)) for other in package["links"]]
        relationships += [(me, "DEPENDS_ON", identifier(other)) for other in package.get("depends", [])]
        if package.get("headers"):
            relationships += [(me, BUILT_WITH, identifier(other["name"])) for other in facts["ours"] if other["links"]]
    for package in packages:
        package.setdefault("licenseDeclared", "MIT")
        package.setdefault("copyrightText", "NOASSERTION")
        package.setdefault("supplier", "NOASSERTION")
        package |= {"downloadLocation": "NOASSERTION", "filesAnalyzed": False, "licenseConcluded": "NOASSERTION"}
    name = f"httpretry-{source['version']}-debian-{facts['release']}"
    result = {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": name,
        # An address that nobody can have (RFC 2606): SPDX wants a name that no other document has.
        "documentNamespace": f"https://httpretry.invalid/spdx/{name}-{source['sha256'][:16]}",
        "creationInfo": {"created": facts["created"], "creators": [f"Tool: httpretry-sbom-{source['version']}"]},
        "packages": packages,
        "relationships": [{"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b}
                          for a, kind, b in relationships]}
    if texts:
        result["hasExtractedLicensingInfos"] = [
            {"licenseId": reference, "name": reference, "extractedText": text} for reference, text in texts.items()]
    return result


# --- checks ---

REQUIRED = {"SPDXID", "name", "versionInfo", "supplier", "downloadLocation", "filesAnalyzed", "licenseConcluded",
            "licenseDeclared", "copyrightText"}
KINDS = {"DESCRIBES", "GENERATED_FROM", "DEPENDS_ON", LINKS, BUILT_WITH}
PURL = r"pkg:deb/debian/[a-z0-9][A-Za-z0-9.%-]+@[A-Za-z0-9.~%-]+\?arch=[a-z0-9]+&distro=debian-\w+"


def problems(found):
    """Returns a sentence for each violation of SPDX 2.3, or of what we promise, in a document."""
    wrong = []

    def expect(condition, sentence):
        if not condition:
            wrong.append(sentence)

    for key, value in {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT"}.items():
        expect(found.get(key) == value, f"{key} is {found.get(key)!r}, not {value!r}")
    expect(found.get("name"), "the document has no name")
    expect(re.fullmatch(r"https?://[^\s#]+", found.get("documentNamespace", "")), "documentNamespace is not a URI")
    creation = found.get("creationInfo", {})
    expect(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", creation.get("created", "")), "created is not a UTC time")
    expect(creation.get("creators") and all(re.match(r"(Tool|Person|Organization): \S", one)
                                            for one in creation["creators"]), "creators is empty or malformed")
    texts = found.get("hasExtractedLicensingInfos", [])
    references = {text.get("licenseId") for text in texts}
    expect(all(text.get("extractedText") for text in texts), "a LicenseRef has no text")
    packages = found.get("packages", [])
    ids = collections.Counter(package.get("SPDXID") for package in packages)
    for package in packages:
        name = package.get("name", "a package without a name")
        missing = sorted(key for key in REQUIRED if package.get(key) in (None, ""))
        expect(not missing, f"{name}: {', '.join(missing)} is missing")
        me = package.get("SPDXID", "")
        expect(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", me), f"{name}: {me!r} is not an SPDXID")
        expect(ids[me] == 1, f"{name}: {me} is used {ids[me]} times")
        expect(re.match(r"NOASSERTION$|(Person|Organization): \S", package.get("supplier", "")),
               f"{name}: the supplier is neither a person nor an organization")
        for word in re.findall(r"LicenseRef-[^\s()]+", package.get("licenseDeclared", "")):
            expect(word in references, f"{name}: the text of {word} is missing")
        for checksum in package.get("checksums", []):
            expect(checksum.get("algorithm") == "SHA256"
                   and re.fullmatch("[0-9a-f]{64}", checksum.get("checksumValue", "")), f"{name}: bad checksum")
        for reference in package.get("externalRefs", []):
            expect(reference.get("referenceType") == "purl"
                   and reference.get("referenceCategory") == "PACKAGE-MANAGER"
                   and re.fullmatch(PURL, reference.get("referenceLocator", "")), f"{name}: bad purl")
        expect(package.get("checksums") or package.get("externalRefs"), f"{name}: neither a checksum nor a purl")
    known = set(ids) | {"SPDXRef-DOCUMENT"}
    related = set()
    for one in found.get("relationships", []):
        ends = {one.get("spdxElementId"), one.get("relatedSpdxElement")}
        expect(ends <= known, f"a relationship names {', '.join(map(str, ends - known))}, which is no package")
        expect(one.get("relationshipType") in KINDS, f"{one.get('relationshipType')} is not a relationship")
        related |= ends
    for package in packages:
        expect(package.get("SPDXID") in related, f"{package.get('name')}: related to nothing")
    expect(any(one.get("relationshipType") == LINKS for one in found.get("relationships", [])),
           "no package links a library")
    return wrong


# --- facts from the system ---

def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def needed(path):
    """Returns (SONAME, libraries that it links) of an ELF file."""
    text = run("readelf", "-d", path)
    name = re.search(r"\(SONAME\).*\[(.+)\]", text)
    return name and name[1], re.findall(r"\(NEEDED\).*\[(.+)\]", text)


def owners(paths):
    """Returns {package} of files that dpkg knows. /lib may be a link to /usr/lib, and dpkg knows one of both."""
    forms = set()
    for path in map(str, paths):
        real = os.path.realpath(path)
        forms |= {path, real, real.removeprefix("/usr"), "/usr" + path}
    # It fails if it does not know one of them.
    listed = subprocess.run(["dpkg-query", "-S", *sorted(forms)], check=False, capture_output=True, text=True).stdout
    return {name.split(":")[0].strip() for line in listed.splitlines() if not line.startswith("diversion")
            for name in line.rpartition(": ")[0].split(",")}


class Libraries:
    """The shared libraries that the dynamic linker of this system finds."""

    def __init__(self):
        self.paths = {}
        for name, path in re.findall(r"^\s+(\S+) \(.*\) => (\S+)$", run("ldconfig", "-p"), re.M):
            self.paths.setdefault(name, path)
        self.packages = {}

    def package(self, name):
        if name not in self.packages:
            if name not in self.paths:
                sys.exit(f"sbom: {name} is linked, but not installed")
            found = owners([self.paths[name]])
            if len(found) != 1:
                sys.exit(f"sbom: {self.paths[name]} belongs to {sorted(found) or 'no package'}, not to one package")
            self.packages[name] = found.pop()
        return self.packages[name]


def described(name, links, headers):
    fields = ["Package", "Version", "Architecture", "Maintainer", "source:Package", "source:Version", "Homepage"]
    values = run("dpkg-query", "-W", "-f", "\t".join(f"${{{field}}}" for field in fields) + "\n", name)
    values = dict(zip(fields, values.split("\n")[0].split("\t")))
    file = pathlib.Path("/usr/share/doc", name, "copyright")
    return {"name": name, "version": values["Version"], "architecture": values["Architecture"],
            "maintainer": values["Maintainer"], "homepage": values["Homepage"],
            "source": f"{values['source:Package']} {values['source:Version']}", "links": sorted(links),
            "headers": headers, "copyright": file.read_text(errors="replace") if file.exists() else ""}


def read_deb(deb, folder):
    """Returns (facts, SONAMEs, SONAMEs that it links) of a package of ours."""
    run("dpkg-deb", "-x", deb, folder)
    provided, wanted = set(), set()
    for path in pathlib.Path(folder).rglob("*"):
        if path.is_symlink() or not path.is_file() or path.open("rb").read(4) != b"\x7fELF":
            continue
        name, libraries = needed(path)
        provided.add(name)
        wanted |= set(libraries)
    control = paragraphs(run("dpkg-deb", "-f", deb))[0]
    facts = {"name": control["package"], "version": control["version"], "maintainer": control["maintainer"],
             "file": pathlib.Path(deb).name, "sha256": sha256(deb), "depends": control.get("depends", ""),
             "copyright": next(pathlib.Path(folder).glob("usr/share/doc/*/copyright")).read_text()}
    return facts, provided - {None}, wanted


def sha256(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def collect(source, build, debs):
    """Returns the facts that document() wants."""
    libraries = Libraries()
    ours, own = [], {}
    for deb in debs:
        with tempfile.TemporaryDirectory() as folder:
            facts, provided, wanted = read_deb(deb, folder)
        ours.append((facts, wanted))
        own |= dict.fromkeys(provided, facts["name"])
    links, todo = collections.defaultdict(set), collections.deque()
    for facts, wanted in ours:
        others = {own.get(name) or libraries.package(name) for name in wanted}
        facts["links"] = sorted(others - {facts["name"]})
        names = {one["name"] for one, _ in ours}
        depends = {re.split(r"[\s(]", word.strip())[0] for word in facts["depends"].split(",")}
        facts["depends"] = sorted(depends & names - {facts["name"]} - others)
        todo.extend(wanted - set(own))
    seen = set(todo)
    while todo:  # and what these libraries link
        name = todo.popleft()
        package = libraries.package(name)
        wanted = set(needed(libraries.paths[name])[1])
        links[package] |= {libraries.package(other) for other in wanted} - {package}
        todo.extend(wanted - seen)
        seen |= wanted
    headers = {word.strip() for word in run("ninja", "-C", build, "-t", "deps").splitlines() if word.startswith("    /usr/")}
    header_packages = owners(headers) if headers else set()
    if not header_packages:
        sys.exit(f"sbom: {build} does not know which headers the compiler read")
    release = dict(re.findall(r'^(\w+)="?([^"\n]*)', pathlib.Path("/etc/os-release").read_text(), re.M))
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or datetime.datetime.now().timestamp())
    file = pathlib.Path(source)
    return {
        "release": release.get("VERSION_ID", release.get("VERSION_CODENAME", "unknown")),
        "created": datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "source": {"file": file.name, "version": re.sub(r"^httpretry-|\.tar\..*$", "", file.name), "sha256": sha256(file)},
        "ours": [facts for facts, _ in ours],
        "others": [described(name, links.get(name, ()), name in header_packages)
                   for name in sorted(set(links) | header_packages)]}


def main():
    parser = argparse.ArgumentParser()
    words = parser.add_subparsers(dest="word", required=True)
    make = words.add_parser("make")
    for option in ("--source", "--build", "--output"):
        make.add_argument(option, required=True)
    make.add_argument("files", nargs="+")
    for word in ("check", "packages"):
        words.add_parser(word).add_argument("files", nargs="+")
    arguments = parser.parse_args()
    if arguments.word == "packages":
        libraries = Libraries()
        names = {name for file in arguments.files for name in needed(file)[1]}
        print(" ".join(sorted({libraries.package(name) for name in names})))
    elif arguments.word == "make":
        found = document(collect(arguments.source, arguments.build, arguments.files))
        pathlib.Path(arguments.output).write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    else:
        for file in arguments.files:
            wrong = problems(json.loads(pathlib.Path(file).read_text()))
            if wrong:
                sys.exit("\n".join(f"{file}: {sentence}" for sentence in wrong))


if __name__ == "__main__":
    main()
