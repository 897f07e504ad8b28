"""The transcripts of the pages are what the program prints, and the picture of README.md is what it draws. The
policy file that the transcripts use is the one that README.md shows.

A transcript that begins with `httpretry serve` leaves the server running for those that follow on its page. What is
sent to it takes real time, so there any number before a unit of time counts as the same.

HTTPRETRY_UPDATE=1 writes them again."""

import os
import pathlib
import re
import subprocess
import sys

from program import LIMIT, PROGRAM, ProgramTest, clean_environment, main

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from pages import README, ROOT, anchors, blocks, pages, prose  # noqa: E402

TIME = r"\b\d+(\.\d+)? (s|ms|us)\b"


class Readme(ProgramTest):
    def transcript(self, line):
        path = os.path.dirname(PROGRAM) + ":" + os.environ["PATH"]
        result = subprocess.run(line, shell=True, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, cwd=self.folder, timeout=LIMIT,
                                env=clean_environment() | {"PATH": path}, check=False)
        return result.stdout.decode()

    def serve(self, line):
        """Starts the server at a free port; the address of the page, and the real one."""
        shown = re.search(r"--listen (\S+)", line)[1]
        args = line.replace(shown, "127.0.0.1:0").split()[1:]
        process = self.start(*args)
        self.addCleanup(process.terminate)
        address = process.stdout.readline().decode().strip()
        return shown, address.removeprefix("http://")

    def run_page(self, text):
        """The page with what its commands print now."""
        shown = real = "no server"

        def run_block(block):
            nonlocal shown, real
            now = ""
            for line in re.findall(r"^\$ (.*)$", block.group(1), re.MULTILINE):
                if line.startswith("httpretry serve "):
                    shown, real = self.serve(line)
                    said = f"http://{shown}\n"
                else:
                    said = self.transcript(line.replace(shown, real)).replace(real, shown)
                now += f"$ {line}\n{said}"
            times = TIME if real != "no server" else r"$^"
            same = re.sub(times, "", now) == re.sub(times, "", block.group(1))
            return "```console\n" + (block.group(1) if same else now) + "```"

        return re.sub(r"```console\n(.*?)```", run_block, text, flags=re.DOTALL)

    def test_the_transcripts_are_true(self):
        (self.folder / "policy.json").write_text(blocks(README.read_text(), "json")[0])
        with_transcripts = [page for page in pages() if "```console" in page.read_text()]
        self.assertIn(README, with_transcripts)
        for page in with_transcripts:
            with self.subTest(page=page):
                now = self.run_page(page.read_text())
                if os.environ.get("HTTPRETRY_UPDATE"):
                    page.write_text(now)
                self.assertEqual(now, page.read_text())

    def test_the_picture_is_drawn_by_the_line_below_it(self):
        text = README.read_text()
        picture, line = re.search(r"!\[[^]]*\]\((\S+\.svg)\)\n\n`(httpretry plan .*--format svg .*)`$", text,
                                  re.MULTILINE).groups()
        picture = README.parent / picture
        drawn = self.run_program(*line.split()[1:]).stdout
        if os.environ.get("HTTPRETRY_UPDATE"):
            picture.write_bytes(drawn)
        self.assertEqual(picture.read_bytes(), drawn)

    def test_the_commands_that_the_demo_suggests_work(self):
        text = re.sub(r'"\s*"', "", (ROOT / "apps/examples/demo.cpp").read_text())
        commands = re.findall(r"  (httpretry [^\\]*)\\n", text.split("What to try next:")[1])
        self.assertEqual(len(commands), 2)
        for command in commands:
            self.assertEqual(self.run_program(*command.split()[1:]).returncode, 0, command)

    def test_every_link_of_the_pages_leads_somewhere(self):
        for page in pages():
            for link, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", prose(page.read_text())):
                with self.subTest(page=page, link=link, anchor=anchor):
                    target = page.parent / link if link else page
                    self.assertTrue(target.exists())
                    if anchor:
                        self.assertIn(anchor, anchors(target.read_text()))

    def test_readme_is_short_and_lists_every_page(self):
        text = README.read_text()
        self.assertLessEqual(len(text.splitlines()), 200)
        listed = text.split("## All pages")[1]
        decisions = ROOT / "lib/decisions/README.md"
        for page in pages():
            if page.parent == decisions.parent and page != decisions:  # too many for the README
                self.assertIn(f"({page.name})", decisions.read_text())
            elif page != README:
                self.assertIn(f"({page.relative_to(ROOT)})", listed)


if __name__ == "__main__":
    main()
