#!/usr/bin/env python3
"""./dev with a package manager and a CMake of ours: what it does while another program has the lock, and what it
builds."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

DEV = pathlib.Path(__file__).resolve().parents[1] / "dev"
LOCKED = "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 1 (apt-get)"

# Not root, so that all that would change this system goes through our sudo.
PROGRAMS = {
    "id": "echo 1000",
    "sudo": 'case $1 in env) exec "$@" ;; *) cat >/dev/null ;; esac',
    "dpkg-query": "exit 1",
    "sleep": 'echo "sleep $*" >>"$LOG"',
    "apt-get": """
echo "$*" >>"$LOG"
calls=$(grep -c "^$1" "$LOG")
if [ "$calls" -le "$FAILURES" ]; then
  echo "$MESSAGE" >&2
  exit 100
fi""",
}


class PackageManager(unittest.TestCase):
    def setup_of_dev(self, failures, message=LOCKED):
        """The exit status, the messages, and each call of apt-get and sleep."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for program, text in PROGRAMS.items():
                (folder / program).write_text("#!/bin/sh\n" + text + "\n")
                (folder / program).chmod(0o755)
            log = folder / "log"
            environment = dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}", LOG=str(log),
                               FAILURES=str(failures), MESSAGE=message, TMPDIR=name)
            result = subprocess.run([DEV, "setup"], env=environment, capture_output=True, text=True,
                                    stdin=subprocess.DEVNULL, check=False)
            return result.returncode, result.stderr, log.read_text().splitlines()

    def test_a_lock_of_another_program_is_waited_for(self):
        status, messages, calls = self.setup_of_dev(failures=2)
        self.assertEqual(status, 0, messages)
        self.assertEqual(calls[:5], ["update -q", "sleep 2", "update -q", "sleep 2", "update -q"])
        self.assertEqual([call.split()[0] for call in calls[5:10]],
                         ["install", "sleep", "install", "sleep", "install"])
        self.assertIn("the package manager is busy: waiting for it, up to a minute", messages)

    def test_the_wait_ends_after_a_minute(self):
        status, messages, calls = self.setup_of_dev(failures=1000)
        self.assertEqual(status, 1)
        self.assertEqual(calls.count("sleep 2"), 30)
        self.assertIn(LOCKED, messages)
        self.assertIn("apt-get update failed", messages)

    def test_another_failure_is_not_waited_for(self):
        status, messages, calls = self.setup_of_dev(1, "E: Unable to fetch some archives")
        self.assertEqual((status, calls), (1, ["update -q"]))
        self.assertIn("Unable to fetch", messages)


class Demo(unittest.TestCase):
    def test_the_demo_is_built_even_if_an_earlier_build_left_the_examples_out(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "apps/examples").mkdir(parents=True)
            (folder / "apps/examples/demo.cpp").touch()
            (folder / "build").mkdir()
            shutil.copy(DEV, folder / "dev")
            programs = {"dpkg-query": "echo installed", "cmake": 'echo "$*" >>"$LOG"; exit 1'}
            for program, text in programs.items():
                (folder / program).write_text("#!/bin/sh\n" + text + "\n")
                (folder / program).chmod(0o755)
            log = folder / "log"
            environment = dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}", LOG=str(log))
            environment.pop("HTTPRETRY_CMAKE_FLAGS", None)
            result = subprocess.run([folder / "dev", "demo"], env=environment, capture_output=True, text=True,
                                    stdin=subprocess.DEVNULL, check=False)
            self.assertIn("cmake could not configure dev", result.stderr)
            self.assertIn("-DHTTPRETRY_BUILD_EXAMPLES=ON", log.read_text())


if __name__ == "__main__":
    unittest.main()
