"""The hostile servers of tests/hostile, as `httpretry serve` plays them."""

import pathlib

from program import ProgramTest, main

SCENARIOS = pathlib.Path(__file__).parent.parent / "hostile"

# The status and the error of each attempt. The errors are not retried.
EXPECTED = {
    "chunk_size_with_0x": [(200, "protocol")],
    "first_line_folded": [(None, "protocol")],
    "length_and_chunks": [(None, "protocol")],
    "list_of_lengths": [(None, "protocol")],
    "long_location": [(None, "too_large")],
    "part_that_nobody_asked_for": [(206, "protocol")],
    "status_line_in_small_letters": [(None, "protocol")],
    "status_line_in_trailers": [(500, None), (200, None)],
    "status_line_without_status": [(None, "protocol")],
    "two_lengths": [(None, "protocol")],
}


class Hostile(ProgramTest):
    def serve(self, name):
        process = self.start("serve", "--log", "log", "--scenario", SCENARIOS / f"{name}.json")
        return process.stdout.readline().decode().strip()

    def test_no_bad_response_is_taken_for_a_good_one(self):
        for name, expected in EXPECTED.items():
            with self.subTest(name):
                self.run_program("--preset", "curl", "--retry", 1, "--retry-delay", 0, "-o", "file",
                                 "--report", "report.json", self.serve(name),
                                 status=tuple(range(100)))
                seen = [(attempt["status"], (attempt["error"] or {}).get("kind"))
                        for attempt in self.report()["attempts"]]
                self.assertEqual(seen, expected)
                file = self.folder / "file"
                self.assertEqual(file.exists(), expected[-1] == (200, None))
                file.unlink(missing_ok=True)

    def test_the_time_is_kept_while_a_small_body_decodes_to_a_huge_one(self):
        self.run_program("-m", 0.3, "--compressed", "-o", "file", self.serve("gzip_bomb"), status=28)
        self.assertEqual(list(self.folder.glob("file*")), [])

    def test_each_scenario_has_its_test(self):
        names = {path.stem for path in SCENARIOS.glob("*.json")}
        self.assertEqual(names, set(EXPECTED) | {"gzip_bomb"})


main()
