"""The transcripts of README.md are what the program says.

HTTPRETRY_UPDATE=1 writes them anew."""

import os
import pathlib
import re
import subprocess
import unittest

from program import LIMIT, PROGRAM, ProgramTest, clean_environment

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
        now = re.sub(r"```console\n(.*?)```", run_all, text, flags=re.DOTALL)
        if os.environ.get("HTTPRETRY_UPDATE"):
            README.write_text(now)
        self.assertEqual(now, README.read_text())


if __name__ == "__main__":
    unittest.main()
