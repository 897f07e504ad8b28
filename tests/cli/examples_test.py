"""The examples that take files and URLs on their command line, against `httpretry serve`."""

import os
import pathlib
import re
import subprocess
import unittest

from program import LIMIT, PROGRAM, ProgramTest, clean_environment, main

EXAMPLES = pathlib.Path(PROGRAM).parent / "examples"
SOURCES = pathlib.Path(__file__).parents[2] / "apps" / "examples"


@unittest.skipUnless(EXAMPLES.exists(), "the examples are not built")
class Examples(ProgramTest):
    def serve(self, outcomes):
        process = self.start("serve", "--outcomes", outcomes)
        self.addCleanup(process.terminate)
        return re.search(r"http://\S+", process.stdout.readline().decode()).group()

    def run_example(self, name, *args):
        result = subprocess.run([EXAMPLES / f"example_{name}", *map(str, args)],
                                capture_output=True, timeout=LIMIT, env=clean_environment(),
                                cwd=self.folder, check=False)
        self.assertEqual(result.returncode, 0, result.stderr.decode())
        self.said = result.stderr.decode()
        return result.stdout.decode()

    def test_get_says_how_often_it_asked(self):
        self.assertEqual(self.run_example("get", self.serve("503,reset,200")), "200: \n")
        self.assertRegex(self.said, r"^succeeded after 3 attempts in \S+ m?s: 503, receive, 200\n$")

    def test_policies_come_from_a_file_from_code_and_from_another_clients_configuration(self):
        config = self.folder / "service_config.json"
        config.write_text('{"methodConfig": [{"name": [{"service": "shop.Orders"}], "retryPolicy": {'
                          '"maxAttempts": 3, "initialBackoff": "0.1s", "maxBackoff": "1s",'
                          '"backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}}]}')
        said = self.run_example("policies", SOURCES / "policy.json", config, self.serve("200"))
        self.assertIn('"careful"', said)
        self.assertIn("/shop.Orders/", said)
        self.assertTrue(said.endswith("\n200\n"), said)

    def test_a_worker_without_its_redis_server_goes_on_with_its_share(self):
        policy = self.folder / "policy.json"
        policy.write_text('{"version": 1, "default": {"rate": {"limit": "1000/s", "burst": 100}}}')
        said = self.run_example("shared_limits", policy, "redis://127.0.0.1:1/0", self.serve("200"))
        self.assertEqual(said, "0 of 100 calls failed\n")
        self.assertIn("127.0.0.1:1", self.said)

    def test_a_download_of_ones_own_goes_into_the_file_that_was_named(self):
        url = self.serve("503,200")
        self.run_example("resume_download", url, "page")
        self.assertTrue((self.folder / "page").exists())


if __name__ == "__main__":
    main()
