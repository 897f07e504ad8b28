"""The pages of this repository: its Markdown files. Tests hold them to the sources and the program."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
FOLDERS = ("apps", "cmake", "lib", "tests")


def pages():
    found = sorted(ROOT.glob("*.md"))
    for folder in FOLDERS:
        found += sorted((ROOT / folder).glob("**/*.md"))
    return found


def blocks(text, language):
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def prose(text):
    """The text without its code."""
    return re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)


def anchors(text):
    """What the headings of a page are called in a link, as GitHub makes it."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
