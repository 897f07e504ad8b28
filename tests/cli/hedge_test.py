"""hedge: a second send where the first is slow."""

import json
import threading
import xml.etree.ElementTree

from program import ProgramTest, Response, main

HEDGE = ("--set", 'hedge={"after": "50ms", "budget": "none"}')
PLANNED = ("--set", 'hedge={"after": "200ms", "max_hedges": 2, "budget": "none"}')


class Hedge(ProgramTest):
    def slow(self, *others):
        held = threading.Event()
        server = self.server(Response(200, b"slow", hold=held), *others)
        self.addCleanup(held.set)  # before the server is closed
        return server

    def test_the_quicker_response_is_used_and_the_report_tells_of_both(self):
        server = self.slow(Response(200, b"quick"))
        result = self.run_program(*HEDGE, "--trace", "--report", "report.json", server.url())
        self.assertEqual(result.stdout, b"quick")
        self.assertEqual(len(server.seen), 2)
        report = self.report()
        self.assertEqual((report["hedges"], report["hedge_refused"]), (1, None))
        lost, won = report["attempts"]
        self.assertEqual((lost["outcome"], lost["decision"], lost["sent"], lost["hedge"]),
                         ("lost", "lost", "maybe", None))
        self.assertEqual((won["outcome"], won["decision"], won["status"]), ("won", "stop", 200))
        self.assertEqual((won["hedge"]["of"], won["hedge"]["from"]), (1, "fixed"))
        self.assertGreaterEqual(won["hedge"]["after_ms"], 50)
        said = result.stderr.decode()
        self.assertRegex(said, r"attempt 2: GET .*\nattempt 2: a hedge: no response yet after ")
        self.assertRegex(said, r"\nattempt 1: canceled after .* \(lost to attempt 2\), sent: maybe")

    def test_a_hedge_is_no_redirect(self):
        for steps in ([{"status": 200, "delay": "900ms"}, {"status": 200}],
                      [{"status": 200, "delay": "300ms"}, {"status": 200, "delay": "900ms"}]):
            with self.subTest(steps=steps):
                (self.folder / "steps.json").write_text(json.dumps({"steps": steps}))
                url = self.start("serve", "--scenario", "steps.json").stdout.readline().decode().strip()
                said = self.run_program(*HEDGE, "-w", "%{attempts} %{num_redirects} %{time_redirect}", url)
                self.assertEqual(said.stdout, b"2 0 0.000000")

    def test_the_last_line_counts_hedges(self):
        server = self.slow(500)
        said = self.run_program(*HEDGE, "--set", 'retry_on.statuses=[503]', "-f", server.url(),
                                status=22).stderr.decode()
        self.assertRegex(said, r"\(22\) GET \S+: failed after 2 attempts \(1 hedge\) in [\d.]+ m?s: (canceled, 500|500, canceled) ")

    def test_what_is_not_hedged_says_why(self):
        step = json.dumps({"steps": [{"status": 200, "delay": "900ms"}]})
        (self.folder / "slow.json").write_text(step)
        for args, why in ((("--set", 'hedge={"after": "50ms"}'), "hedge_budget"),
                          ((*HEDGE, "--set", "max_attempts=1"), "attempts"),
                          (("--set", 'hedge={"after": "p95", "max": "100ms", "budget": 0.1}'), "warming")):
            shown = self.run_program("plan", *args, "--scenario", "slow.json").stdout.decode()
            self.assertIn(f"\nno hedge: {why}\n", shown)
        shown = self.run_program("plan", *HEDGE, "--scenario", "slow.json", "POST",
                                 "http://h/").stdout.decode()
        self.assertIn("\nno hedge: method\n", shown)
        process = self.start("serve", "--scenario", "slow.json")
        url = process.stdout.readline().decode().strip()
        said = self.run_program("--set", 'hedge={"after": "50ms"}', "--trace", "--report",
                                "report.json", url).stderr.decode()
        self.assertIn("\nno hedge: hedge_budget\n", said)
        self.assertEqual(self.report()["hedge_refused"], "hedge_budget")


class Plan(ProgramTest):
    def plan(self, *args):
        (self.folder / "slow.json").write_text(json.dumps({"steps": [
            {"status": 200, "delay": "900ms"}, {"status": 503, "delay": "300ms"},
            {"status": 200, "delay": "20ms"}]}))
        return self.run_program("plan", *args, *PLANNED, "--scenario", "slow.json").stdout.decode()

    def test_the_table_says_when_each_send_ends_and_which_has_won(self):
        rows = [line.split("  ") for line in self.plan().splitlines()]
        rows = [[cell.strip() for cell in row if cell.strip()] for row in rows]
        self.assertEqual(rows[1][:4], ["attempt", "at", "ends", "outcome"])
        self.assertEqual(rows[2][:4], ["1", "0 s", "420 ms", "canceled"])
        self.assertEqual(rows[2][-2:], ["lost", "lost to attempt 3"])
        self.assertEqual(rows[3][:4], ["2", "200 ms", "420 ms", "canceled"])
        self.assertEqual(rows[4][:4], ["3", "400 ms", "420 ms", "200"])
        self.assertEqual(rows[4][-2:], ["won; hedge after 400 ms (fixed)", "status 200"])

    def test_calls_at_once_show_their_hedges(self):
        self.assertEqual(self.plan("--parallel", 2).count("won; hedge after 200 ms (fixed)"), 2)

    def test_the_budget_is_shown(self):
        budget = ("--set", 'hedge={"after": "100ms", "budget": 0.2}')
        slow = ("--scenario", "slow.json")
        (self.folder / "slow.json").write_text('{"steps": [{"status": 200, "delay": "1s"}]}')
        said = self.run_program("plan", "--parallel", 10, *budget, *slow).stdout.decode()
        self.assertIn("\n8 without a hedge: hedge_budget\n"
                      "hedge budget: 2 of 2 used by 10 calls in 10 s\n", said)
        said = self.run_program("plan", "--repeat", 5, *budget, *slow).stdout.decode()
        self.assertTrue(said.endswith("\nhedge budget: 1 of 1 used by 5 calls in 10 s\n"), said)
        said = self.run_program("plan", *budget, *slow).stdout.decode()
        self.assertTrue(said.endswith("\nno hedge: hedge_budget\n"
                                      "hedge budget: 0 of 0 used by 1 call in 10 s\n"), said)

    def test_bars_that_overlap_lie_one_below_the_other(self):
        drawing = xml.etree.ElementTree.fromstring(self.plan("--format", "svg"))
        bars = [each.attrib for each in drawing.iter()
                if each.tag.endswith("rect") and each.get("class", "").startswith("time ")]
        self.assertEqual(len(bars), 3)
        for before, after in zip(bars, bars[1:]):
            self.assertLess(float(before["x"]), float(after["x"]))
            self.assertLessEqual(float(before["y"]) + float(before["height"]), float(after["y"]) + 0.1)


if __name__ == "__main__":
    main()
