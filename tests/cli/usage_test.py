"""The command line: help texts, completions and usage errors.

HTTPRETRY_UPDATE=1 rewrites the golden help texts."""

import functools
import os
import pathlib
import pty
import re
import select
import shlex
import shutil
import subprocess
import unittest

from program import DATA, LIMIT, NOT_HERE, PROGRAM, ProgramTest, Response, main, some


class Usage(ProgramTest):
    COMMANDS = ((), ("plan",), ("policy",), ("policy", "check"), ("policy", "explain"),
                ("policy", "presets"), ("policy", "schema"), ("serve",), ("simulate",), ("batch",),
                ("work",),
                ("completion",), ("manual",))

    def golden(self, name, text):
        golden = DATA / name
        if os.environ.get("HTTPRETRY_UPDATE"):
            golden.write_text(text)
        self.assertEqual(text, golden.read_text())

    def test_help(self):
        for words in self.COMMANDS:
            text = self.run_program(*words, "--help").stdout.decode()
            self.golden("_".join(("help", *words)) + ".txt", text)
            self.assertLessEqual(max(map(len, text.splitlines())), 80)
        self.assertEqual(self.run_program("-h").stdout, self.run_program("--help").stdout)
        self.assertEqual(self.run_program("-X", "GET", "--help").stdout,
                         self.run_program("--help").stdout)

    def test_help_about_a_topic(self):
        whole = self.run_program("--help").stdout
        for words in (("help",), ("help", "all"), ("-h", "all"), ("--help", "all")):
            self.assertEqual(self.run_program(*words).stdout, whole)
        group = self.run_program("--help", "tls").stdout.decode()
        self.assertTrue(group.startswith("TLS:\n  -k, --insecure"))
        self.assertIn("\n" + group, whole.decode())
        self.assertEqual(self.run_program("help", "TLS").stdout.decode(), group)
        for topic in ("--retry-delay", "retry-delay", "--output", "-o", "--no-location"):
            text = self.run_program("--help", topic).stdout.decode()
            self.assertIn(text, whole.decode())
            self.assertIn(topic.replace("no-", "") + " ", text + " ")
            self.assertEqual(len(re.findall(r"^ {2}(?:-\S, |    )--", text, re.MULTILINE)), 1)
        for words in (("plan",), ("policy", "check")):
            text = self.run_program(*words, "--help").stdout
            self.assertEqual(self.run_program("help", *words).stdout, text)
        self.assertEqual(self.run_program("help", "policy").stdout,
                         self.run_program("policy", "--help").stdout)
        self.assertTrue(self.run_program("plan", "--help", "--seed").stdout.startswith(b"      --seed N"))
        self.assertIn("--negotiate is curl's", self.run_program("--help", "negotiate").stdout.decode())
        self.assertIn('option --help: "nothing" is neither an option nor one of all, request, body, ',
                      self.usage_error("--help", "nothing"))

    def test_no_turns_an_option_off(self):
        server = self.server(Response(302, b"", [("Location", "/b")]), 200)
        self.run_program("-L", "--no-location", server.url())
        self.assertEqual(len(server.seen), 1)
        self.run_program("--no-insecure", "--no-progress-bar", "--no-compressed", server.url())
        for args, message in ((("--no-location=1", "u"), "option --no-location takes no value"),
                              (("--no-retry", "u"), "option --no-retry is unknown"),
                              (("--no-zzzz", "u"), "option --no-zzzz is unknown")):
            self.assertIn(message, self.usage_error(*args))

    @functools.cache
    def flags(self, *words):
        """The long and the short flags of a command, as its help has them."""
        text = self.run_program(*words, "--help").stdout.decode()
        return (re.findall(r"^ {2}(?:-\S, |    )--([\w.-]+)", text, re.MULTILINE),
                re.findall(r"^ {2}-(\S), ", text, re.MULTILINE))

    def test_the_manual_has_every_flag(self):
        page = self.run_program("manual").stdout.decode()
        for words in self.COMMANDS:
            for flag in self.flags(*words)[0]:
                self.assertIn("--" + flag, page.replace("\\-", "-"))
        built = pathlib.Path(PROGRAM).with_name("httpretry.1")
        if built.exists():
            self.assertEqual(page, built.read_text())
        if shutil.which("groff"):
            result = subprocess.run(["groff", "-ww", "-man", "-Tutf8"], input=page.encode(),
                                    capture_output=True, check=True)
            self.assertEqual(result.stderr, b"")

    def test_completions_have_every_flag(self):
        for shell in ("bash", "zsh", "fish"):
            script = self.run_program("completion", shell).stdout.decode()
            for words in self.COMMANDS:
                for flag in self.flags(*words)[0]:
                    self.assertIn(("-l " if shell == "fish" else "--") + flag, script)
            if shutil.which(shell):
                subprocess.run([shell, "-n"], input=script.encode(), check=True)

    def complete(self, *words):
        """What bash offers for the last of the words."""
        script = self.run_program("completion", "bash").stdout.decode()
        listed = " ".join(shlex.quote(word) for word in ("httpretry", *words))
        result = subprocess.run(
            ["bash", "-c", f"{script}\nCOMP_WORDS=({listed}); COMP_CWORD={len(words)}\n_httpretry\n"
             'printf "%s\\n" "${COMPREPLY[@]}"'], capture_output=True, check=True, cwd=self.folder,
            env=os.environ | {"PATH": os.path.dirname(PROGRAM) + ":" + os.environ["PATH"]})
        return result.stdout.decode().split()

    def test_bash_completes(self):
        (self.folder / "afile").touch()
        self.assertEqual(self.complete("--retry-c"), ["--retry-connrefused"])
        self.assertEqual(self.complete("--color", "al"), ["always"])
        self.assertEqual(self.complete("-o", "af"), ["afile"])
        self.assertEqual(self.complete("pl"), ["plan"])
        self.assertEqual(self.complete("policy", "ex"), ["explain"])
        self.assertEqual(self.complete("plan", "--format", "s"), ["svg"])
        self.assertEqual(self.complete("policy", "explain", "--fo"), ["--format"])
        self.assertEqual(self.complete("plan", "--preset", "decor"), ["decorrelated-jitter"])
        self.assertEqual(self.complete("completion", "z"), ["zsh"])

    @unittest.skipUnless(shutil.which("fish"), "no fish")
    def test_fish_completes(self):
        (self.folder / "c.fish").write_bytes(self.run_program("completion", "fish").stdout)
        (self.folder / "plain").touch()  # the first word names no file
        for line, word in (("--retry-c", "--retry-connrefused"), ("--color al", "always"),
                           ("pl", "plan"), ("policy ex", "explain"), ("plan --format s", "svg"),
                           ("plan --preset decor", "decorrelated-jitter"), ("completion z", "zsh")):
            result = subprocess.run(
                ["fish", "--no-config", "-c", f"source c.fish; complete -C 'httpretry {line}'"],
                capture_output=True, check=True, cwd=self.folder, env=os.environ | {
                    "PATH": os.path.dirname(PROGRAM) + ":" + os.environ["PATH"],
                    "HOME": str(self.folder)})
            offered = [each.split("\t")[0] for each in result.stdout.decode().splitlines()]
            self.assertEqual(offered, [word], line)

    @unittest.skipUnless(shutil.which("zsh"), "no zsh")
    def test_zsh_completes(self):
        (self.folder / "_httpretry").write_bytes(self.run_program("completion", "zsh").stdout)
        shell, its = pty.openpty()
        process = subprocess.Popen(["zsh", "-f", "-i"], stdin=its, stdout=its, stderr=its,
                                   cwd=self.folder, start_new_session=True,
                                   env={"PATH": os.environ["PATH"], "TERM": "dumb",
                                        "HOME": str(self.folder)})
        self.addCleanup(os.close, shell)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        os.close(its)

        def type_and_wait(keys, pattern):
            os.write(shell, keys.encode())
            said = b""
            while not re.search(pattern.encode(), said):
                self.assertTrue(select.select([shell], [], [], LIMIT)[0], said)
                said += os.read(shell, 4096)

        # A function in its place tells what was completed.
        type_and_wait("PS1='re''ady>' PROMPT_SP= fpath=($PWD $fpath); autoload -Uz compinit; "
                      "compinit -u -d none; httpretry() { print \"got:$*.\" }\n", "ready>")
        for line, words in (("--retry-c", "--retry-connrefused"), ("--color al", "--color always"),
                            ("pl", "plan"), ("policy ex", "policy explain"),
                            ("plan --format s", "plan --format svg"), ("completion z",
                                                                       "completion zsh")):
            type_and_wait(f"httpretry {line}\t\n", f"got:{words} ?\\.(.|\n)*ready>")

    def options_with_values(self, *words):
        """The long options of a command that need a value, and their help texts."""
        text = self.run_program(*words, "--help").stdout.decode()
        entries = re.split(r"^ {2}(?:-\S, |    )--", text, flags=re.MULTILINE)[1:]
        named = (re.match(r"([\w.-]+) \S+\s+(.*?)(?:\n\n|\Z)", entry, re.DOTALL)
                 for entry in entries if re.match(r"[\w.-]+ \S", entry))
        return {entry[1]: " ".join(entry[2].split()) for entry in named}

    def test_only_documented_options_take_an_empty_value(self):
        take_one = {"cookie", "data", "data-ascii", "data-binary", "data-raw", "data-urlencode", "header", "json",
                    "noproxy", "proxy", "referer", "user", "user-agent"}
        for words in self.COMMANDS:
            options = self.options_with_values(*words)
            documented = {name for name, about in options.items()
                          if '""' in about or about.startswith("like --data")}
            self.assertLessEqual(documented, take_one)
            if words == ():
                self.assertEqual(documented, take_one)
                self.assertGreater(len(options), 60)
            for name in some(sorted(options.keys() - documented)):
                message = f"option --{name} needs a value that is not empty"
                # All commands have the same parser, so one of them shows both spellings.
                spellings = [(f"--{name}", ""), (f"--{name}=",)]
                for args in spellings if words == () else spellings[:1]:
                    result = self.run_program(*words, *args, status=2)
                    self.assertIn(message, result.stderr.decode())
                if words != ():
                    continue
                (self.folder / "options").write_text(f'{name} = ""\n')
                result = self.run_program("-K", "options", status=2)
                self.assertIn("options:1: " + message, result.stderr.decode())

    def test_an_empty_value_means_what_the_help_says(self):
        server = self.server(200)
        self.assertIn('option -e: ";auto" is not supported', self.usage_error("-e", ";auto", "http://a/"))
        self.run_program("-A", "", "-e", "", "-H", "", "-b", "", "-u", ":", "-x", "", "-d", "",
                         server.url())
        seen = server.seen[0]
        self.assertEqual((seen.method, seen.body), ("POST", b""))
        for name in ("user-agent", "referer", "cookie", ""):
            self.assertNotIn(name, seen.headers)
        proxy = self.server(Response(200, b"by proxy"))
        environment = {"http_proxy": proxy.url(), "no_proxy": "*"}
        self.assertEqual(
            self.run_program("--noproxy", "", server.url(), env=environment).stdout, b"by proxy")

    def test_version_names_libcurls(self):
        first, second = self.run_program("-V").stdout.decode().splitlines()
        self.assertRegex(first, r"^httpretry \d+\.\d+\.\d+ libcurl/\d")
        self.assertRegex(second, r"^tested with libcurl 7\.88\.1, .*\d$|, not with this one$")
        version = first.split("libcurl/")[1].split()[0]
        self.assertEqual(f" {version}," in second + ",", "not with this one" not in second)

    def test_what_is_refused(self):
        for args, message in (
                ((), "no URL given"),
                (("--retyr", "3", "u"), "option --retyr is unknown; did you mean --retry?"),
                (("--zzzzzzzz", "u"), "option --zzzzzzzz is unknown"),
                (("-s!S", "u"), "option -! is unknown (in -s!S)"),
                (("u", "-X"), "option -X needs a value"),
                (("--silent=1", "u"), "option --silent takes no value"),
                (("--idempotency-key=", "u"), "option --idempotency-key= needs a value"),
                (("-m", "soon", "u"), 'option --max-time: "soon" is not a number of seconds'),
                (("-m", "-1", "u"), "is not a number of seconds from 0 to a year"),
                (("--retry", "x", "u"), 'option --retry: "x" is not a whole number'),
                (("--max-redirs", "-2", "u"), 'option --max-redirs: "-2" is not a whole number'),
                (("--color", "pink", "u"), 'option --color: "pink" is not one of auto, always'),
                (("-retry", "3", "u"),
                 'option -r: "etry" is not a range of bytes, such as 0-99 or -500; did you mean '
                 "--retry?"),
                (("-I", "-d", "x", "u"), "a request can have only one of -I, -T, -F and -d"),
                (("-F", "a=b", "-T", "x", "u"), "a request can have only one of -I, -T, -F and -d"),
                (("-F", "nothing", "u"), "option -F: expected NAME=CONTENT, found no name"),
                (("--form-string", "nothing", "u"),
                 "option --form-string: expected NAME=CONTENT, found no name"),
                (("-F", 'a="b"c', "u"), 'option -F, "a": expected ;type=, ;filename= or ;headers='),
                (("-F", "a=b;c", "u"), 'put content with ";" in quotes'),
                (("-F", "a=b;type=none", "u"), "expected a content type after ;type=, such as"),
                (("-F", "a=b;type=a/no\nne", "u"), "content type"),
                (("-F", "a=b;headers=none", "u"),
                 'option -F, "a": expected NAME: VALUE after ;headers='),
                (("--until", "json:/state<=A", "u"), "is not a condition like status=200"),
                (("--next", "u"), "option --next: no URL is given before it"),
                (("u", "--next"), "no URL given"),
                (("--proto", "=gopher,htp", "u"),
                 'option --proto: "htp" is not a protocol; expected a list such as =https'),
                (("-OJ", "-i", "http://h/x"), "-J cannot be combined with -i or -C"),
                (("-OJ", "-C", "-", "http://h/x"), "-J cannot be combined with -i or -C"),
                (("-C", "7", "-r", "0-9", "u"), "-C cannot be combined with -r"),
                (("-C", "-", "--har", "h", "--har-bodies", "u"), "-C - cannot be combined with --har-bodies"),
                (("-m", "5 s", "u"), "such as 5, 0.5 or 500ms"),
                (("-Nm", "1d", "u"), "such as 5, 0.5 or 500ms"),
                (("--set", "backoff.kind=constant", "u"), '--set backoff: missing key "interval"'),
                (("-U", "me", "u"), "option -U: no password given; expected NAME:PASSWORD"),
                (("--resolve", "h:1", "u"), 'option --resolve: expected HOST:PORT:ADDRESS'),
                (("--connect-to", "h", "u"), 'option --connect-to: expected HOST:PORT'),
                (("-C", "x", "u"), 'option -C: "x" is not a number of bytes'),
                (("-C", "7", "-i", "u"), "-C cannot be combined with -i, -I or --until"),
                (("-C", "7", "-d", "x", "u"), "-C cannot be combined with -d or -F; with -T it needs"),
                (("-C", "-", "u"), "-C - resumes a file: the response of u needs -o FILE or -O"),
                (("-O", "http://h/"), "does not end in a file name; use -o FILE"),
                (("-E", ":password", "u"), 'option --cert: there is no file name before the ":"'),
                (("--key", "f", "https://h/"), "option --cert: a private key needs the file of its certificate"),
                (("--max-filesize", "big", "u"), '"big" is not a number of bytes, such as 500, 20K'),
                (("--max-filesize", "1X", "u"), '"1X" is not a number of bytes'),
                (("--max-filesize", "99999999T", "u"), "is not a number of bytes"),
                (("--parallel-max", "0", "u"), "option --parallel-max must be at least 1"),
                (("--pinnedpubkey", "sha256//x", "https://h/"),
                 "option --pinnedpubkey: \"sha256//x\" is not"),
                (("-x", "ftp://p", "u"), "option --proxy: the scheme must be one of http"),
                (("completion",), "completion needs one of bash, zsh, fish"),
                (("completion", "csh"), '"csh" is not one of bash, zsh, fish'),
                (("manual", "x"), "manual takes no operands"),
                (("-H", "nonsense", "u"), "option -H: the text is not a header"),
                (("-H", "Accept text/html", "u"), 'option -H: "Accept …" is not a header'),
                (("-H", "a;b", "u"), 'option -H: "a;" means an empty header, but text follows the ";"'),
                (("-X", "GE T", "u"), "a request method must be a token"),
                (("-u", "me", "u"), "option -u: no password given; expected"),
                (("-T", "a", "-T", "b", "u"), "more -T than URLs; each file needs a URL"),
                (("-o", "a", "-o", "b", "u"), "more -o or -O than URLs; each"),
                (("--until", "x=1", "u"), "is not a condition like status=200"),
                (("--until", "status=1", "u"), "is not a condition like status=200"),
                (("ftp://h/",), '"ftp://h/" is not a usable URL: its scheme must be http or https'),
                (("policy",), "policy needs a command: one of check, explain, presets, schema"),
                (("policy", "chekc"), 'policy: unknown command "chekc"; did you mean "check"?'),
                (("check", "policy.json"),
                 '"check" is not a URL; did you mean httpretry policy check?'),
                (("polcy", "check", "policy.json"),
                 '"polcy" is not a URL; did you mean httpretry policy?'),
                (("serv",), "did you mean httpretry serve? (For a host of that name, use http://serv/.)"),
                (("get", "http://h/"), '"get" is not a URL; did you mean -X GET?'),
                (("--preset", "aws", "u"), 'there is no preset "aws"; did you mean aws-standard, '),
                (("--set", "attempt_timeout=5", "u"), "--set attempt_timeout: 5 has no unit; write 5s"),
                (("--retries", "3", "u"),
                 "option --retries is unknown; did you mean --retry 3, which is up to four attempts?"),
                (("--timeout", "3", "u"), "option --timeout is unknown; did you mean -m 5 (all attempts "),
                (("policy", "presets", "gsc"), 'there is no preset "gsc"; did you mean "gcs"?'),
                (("policy", "check"), "policy check needs at least one FILE"),
                (("policy", "explain", "x"), "policy explain needs FILE METHOD URL"),
                (("policy", "presets", "a", "b"), "policy presets takes at most one NAME"),
                (("policy", "schema", "a"), "policy schema takes no operands")):
            with self.subTest(args=args):
                self.assertIn(message, self.usage_error(*args))

    def test_options_of_curls_that_are_missing_on_purpose_are_named(self):
        for args, message in (
                (("--negotiate", "u"), "option --negotiate is curl's, and deliberately missing here: "
                                       "Kerberos is not supported; use --ntlm"),
                (("-s1", "u"), "option -1 (in -s1) is curl's, and deliberately missing here: TLS before"),
                (("--ftp-pasv", "u"), "it is for protocols other than HTTP"),
                (("-0", "u"), "only HTTP/1.1 and HTTP/2 are sent")):
            with self.subTest(args=args):
                self.assertIn(message, self.usage_error(*args))

    @unittest.skipUnless(shutil.which("curl"), "curl is not installed")
    def test_every_option_of_curls_is_there_or_named(self):
        known = self.run_program("--help").stdout.decode()
        if b" 7.88." not in subprocess.run(["curl", "-V"], stdout=subprocess.PIPE, check=True).stdout:
            self.skipTest(NOT_HERE + "curl 7.88, whose options we know")
        listed = subprocess.run(["curl", "--help", "all"], stdout=subprocess.PIPE, check=True).stdout
        options = re.findall(r"^ (?:(-.), |    ) *(--[\w.-]+)", listed.decode(), re.M)
        page = self.run_program("manual", "--markdown").stdout.decode()
        section = page.split("## Options of curl that are refused\n")[1].split("\n## ")[0]
        refused = re.findall(r"-[^ ,]+", ", ".join(re.findall(r"^\| `(.*)` \|", section, re.M)))
        self.assertEqual(len(refused), len(set(refused)))
        self.assertEqual([option for option in refused if f" {option} " in known or
                          f" {option}, " in known or f" {option}\n" in known], [])
        self.assertGreater(len(options), 200)
        missing = [(letter, name) for letter, name in options
                   if f"{name} " not in known and f"{name}\n" not in known]
        for letter, name in some(missing):
            for option in filter(None, (name, letter)):
                with self.subTest(option=option):
                    self.assertIn(f"option {option} is curl's, and deliberately missing here: ",
                                  self.usage_error(option, "http://h.invalid/"))
                    self.assertIn(option, refused)

    def test_the_variable_that_names_a_policy_file_is_named(self):
        ran = self.run_program("http://h.invalid/", env={"HTTPRETRY_POLICY": "/none"}, status=3)
        self.assertEqual(ran.stderr, b"/none: No such file or directory\n"
                                     b"httpretry: the variable HTTPRETRY_POLICY names this file\n")

    def test_an_unreadable_body_is_26(self):
        for args in (("-d@missing",), ("-T", "missing"), ("-H@missing",), ("-T", ".")):
            result = self.run_program(*args, "http://127.0.0.1:1/", status=26)
            self.assertIn("cannot read", result.stderr.decode())


if __name__ == "__main__":
    main()
