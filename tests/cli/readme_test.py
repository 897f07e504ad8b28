"""The transcripts of README.md are what the program says, and its picture is what it draws. The
policy file that the transcripts name is the one that README.md shows.

HTTPRETRY_UPDATE=1 writes them anew."""

import os
import pathlib
import re
import subprocess

from program import LIMIT, PROGRAM, ProgramTest, clean_environment, main

README = pathlib.Path(__file__).parents[2] / "README.md"


class Readme(ProgramTest):
    def transcript(self, line):
        path = os.path.dirname(PROGRAM) + ":" + os.environ["PATH"]
        result = subprocess.run(line, shell=True, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, cwd=self.folder, timeout=LIMIT,
                                env=clean_environment() | {"PATH": path}, check=False)
        return f"$ {line}\n{result.stdout.decode()}"

    def test_the_transcripts_are_true(self):
        def run_all(block):
            lines = re.findall(r"^\$ (.*)$", block.group(1), re.MULTILINE)
            return "```console\n" + "".join(map(self.transcript, lines)) + "```"

        text = README.read_text()
        self.assertIn("```console", text)
        policy_file = re.search(r"```json\n(.*?)```", text, flags=re.DOTALL)[1]
        (self.folder / "policy.json").write_text(policy_file)
        now = re.sub(r"```console\n(.*?)```", run_all, text, flags=re.DOTALL)
        if os.environ.get("HTTPRETRY_UPDATE"):
            README.write_text(now)
        self.assertEqual(now, README.read_text())

    def test_the_picture_is_drawn_by_the_line_below_it(self):
        text = README.read_text()
        picture = README.parent / re.search(r"!\[.*?\]\((\S+\.svg)\)", text)[1]
        line = re.search(r"^`(httpretry plan .*--format svg .*)`$", text, re.MULTILINE)[1]
        drawn = self.run_program(*line.split()[1:]).stdout
        if os.environ.get("HTTPRETRY_UPDATE"):
            picture.write_bytes(drawn)
        self.assertEqual(picture.read_bytes(), drawn)

    def test_every_link_of_the_pages_leads_somewhere(self):
        root = README.parent
        for page in [README, *root.glob("lib/**/*.md"), *root.glob("apps/**/*.md")]:
            prose = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)
            for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", prose):
                self.assertTrue((page.parent / link).exists(), f"{page}: {link}")


if __name__ == "__main__":
    main()
