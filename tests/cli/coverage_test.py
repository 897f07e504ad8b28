"""Checks that the tests of the program are complete: each flag is used, and each error message whose
text is in the source is expected by a test."""

import ast
import pathlib
import re

from program import ProgramTest, main

HERE = pathlib.Path(__file__).parent
SOURCES = HERE.parents[1] / "apps" / "httpretry"
COMMANDS = ((), ("plan",), ("policy", "check"), ("policy", "explain"), ("policy", "presets"),
            ("policy", "schema"), ("serve",), ("batch",), ("work",), ("completion",),
            ("manual",))


def texts_of_tests():
    """The string constants of all tests."""
    texts = set()
    for path in HERE.glob("*_test.py"):
        if path.name == pathlib.Path(__file__).name:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)):
                value = node.value
                texts.add(value.decode("latin-1") if isinstance(value, bytes) else value)
    return texts


def uses(texts, flag, letter):
    for text in texts:
        if text == "--" + flag or text.startswith(f"--{flag}="):
            return True
        # "-o", "-ofile", "-sSL"
        if letter and re.match(r"^-[^\W\d_#]", text) and not text.startswith("--"):
            cluster = re.match(r"^-([a-zA-Z46#]+)", text).group(1)
            if letter in cluster:
                return True
        if letter and text == "-" + letter:
            return True
    return False


def thrown(source):
    """The texts of each error: the literals of its expression."""
    for match in re.finditer(r"(?:Usage|Read|Write)Error\(|\bfail\(|say\(", source):
        depth, at = 1, match.end()
        literals = []
        while depth:
            literal = re.compile(r'"((?:[^"\\]|\\.)*)"').match(source, at)
            if literal:
                literals.append(literal.group(1))
                at = literal.end()
                continue
            if source.startswith("'(',", at) or source.startswith("')'", at):
                at += 3
                continue
            depth += {"(": 1, ")": -1}.get(source[at], 0)
            at += 1
        if literals:
            yield [re.sub(r'\\(.)', lambda m: {"n": "\n", "r": "\r", "t": "\t"}.get(
                m.group(1), m.group(1)), literal) for literal in literals]


def regex_words(text):
    """A regular expression of a test, approximately as plain text."""
    return re.sub(r"\\(.)", r"\1", text)


def is_seen(literals, texts):
    """Whether a test contains fifteen characters of it, or all of a short one."""
    longest = max(literals, key=len)
    need = min(15, len(longest.strip()))
    pieces = {longest[i:i + need] for i in range(len(longest) - need + 1)}
    return any(piece in text for text in texts for piece in pieces)


class Coverage(ProgramTest):
    def test_each_flag_is_used(self):
        texts = texts_of_tests()
        unused = []
        for words in COMMANDS:
            help_text = self.run_program(*words, "--help").stdout.decode()
            flags = re.findall(r"^ {2}(?:-(\S), |    )--([\w.-]+)", help_text, re.MULTILINE)
            self.assertTrue(flags, words)
            unused += [" ".join((*words, "--" + name)) for letter, name in flags
                       if not uses(texts, name, letter)]
        self.assertEqual(unused, [])

    def test_each_message_is_expected(self):
        texts = {regex_words(text) for text in texts_of_tests()}
        unseen, seen = [], 0
        for path in sorted(SOURCES.rglob("*.cpp")):
            for literals in thrown(path.read_text()):
                longest = max(literals, key=len)
                if len(longest.strip(' :"')) < 6:
                    continue
                if is_seen(literals, texts):
                    seen += 1
                else:
                    unseen.append(f"{path.name}: {longest}")
        self.assertEqual(unseen, [])
        self.assertGreater(seen, 50)


if __name__ == "__main__":
    main()
