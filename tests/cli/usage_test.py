"""The command line itself: help, and what is refused, each in its own words.

HTTPRETRY_UPDATE=1 writes the golden help texts anew."""

import os
import unittest

from program import DATA, ProgramTest


class Usage(ProgramTest):
    def test_help(self):
        for name, args in (("help", ()), ("help_plan", ("plan",)), ("help_policy", ("policy",)),
                           ("help_serve", ("serve",))):
            text = self.run_program(*args, "--help").stdout.decode()
            golden = DATA / f"{name}.txt"
            if os.environ.get("HTTPRETRY_UPDATE"):
                golden.write_text(text)
            self.assertEqual(text, golden.read_text())
            self.assertLessEqual(max(map(len, text.splitlines())), 100)
        self.assertEqual(self.run_program("-h").stdout, self.run_program("--help").stdout)

    def test_version_names_libcurls(self):
        self.assertRegex(self.run_program("-V").stdout.decode(),
                         r"^httpretry \d+\.\d+\.\d+ libcurl/\d")

    def test_what_is_refused(self):
        for args, message in (
                ((), "no URL given"),
                (("--retyr", "3", "u"), "option --retyr is unknown; did you mean --retry?"),
                (("--zzzzzzzz", "u"), "option --zzzzzzzz is unknown"),
                (("-sqS", "u"), "option -q is unknown (in -sqS)"),
                (("u", "-X"), "option -X needs a value"),
                (("--silent=1", "u"), "option --silent takes no value"),
                (("--idempotency-key=", "u"), "option --idempotency-key has an empty value"),
                (("-m", "soon", "u"), 'option --max-time: "soon" is not a number of seconds'),
                (("-m", "-1", "u"), "is not a number of seconds from 0 to a year"),
                (("--retry", "x", "u"), 'option --retry: "x" is not a whole number'),
                (("--max-redirs", "-2", "u"), 'option --max-redirs: "-2" is not a whole number'),
                (("--color", "pink", "u"), 'option --color: "pink" is not one of auto, always'),
                (("-F", "a=b", "u"), "option -F is not supported yet"),
                (("--proxy", "p", "u"), "option --proxy is not supported yet"),
                (("-I", "-d", "x", "u"), "only one of -I, -T and -d"),
                (("-H", "nonsense", "u"), '"nonsense" is not a header'),
                (("-H", "a;b", "u"), 'has text behind its ";"'),
                (("-X", "GE T", "u"), "a request method must be a token"),
                (("-u", "me", "u"), "the password is missing"),
                (("-T", "a", "-T", "b", "u"), "more -T than URLs"),
                (("-o", "a", "-o", "b", "u"), "more -o than URLs"),
                (("--until", "x=1", "u"), "is neither status=CODE nor json:/POINTER=VALUE"),
                (("--until", "status=1", "u"), "is neither status=CODE nor json:/POINTER=VALUE"),
                (("ftp://h/",), '"ftp://h/" is not a usable URL: its scheme must be http or https'),
                (("policy",), "policy: one of check, explain, presets, schema is missing"),
                (("policy", "chekc"), 'policy: "chekc" is unknown; did you mean check?'),
                (("policy", "check"), "policy check: a FILE is missing"),
                (("policy", "explain", "x"), "policy explain takes FILE METHOD URL"),
                (("policy", "presets", "a", "b"), "policy presets takes one NAME"),
                (("policy", "schema", "a"), "policy schema takes nothing")):
            with self.subTest(args=args):
                self.assertIn(message, self.usage_error(*args))

    def test_an_unreadable_body_is_26(self):
        for args in (("-d@missing",), ("-T", "missing"), ("-H@missing",), ("-T", ".")):
            result = self.run_program(*args, "http://127.0.0.1:1/", status=26)
            self.assertIn("cannot read", result.stderr.decode())


if __name__ == "__main__":
    unittest.main()
