"""plan: the waits and decisions of policies, in virtual time."""

import datetime
import json
import os
import xml.etree.ElementTree

from program import DATA, ProgramTest, main

SVG = "{http://www.w3.org/2000/svg}"


class Plan(ProgramTest):
    def plan(self, *args):
        return self.run_program("plan", *args).stdout.decode()

    def calls(self, *args):
        return json.loads(self.plan("--format", "json", *args))

    def waits(self, *args):
        return [a["wait_ms"] for a in self.calls(*args)["attempts"]]

    def test_googles_nominal_intervals(self):
        waits = self.waits("--preset", "google-http-client-1.15", "--random", "0.5")
        self.assertEqual([f"{wait / 1000:.2f}" for wait in waits[:-1]],
                         "0.50 0.75 1.12 1.69 2.53 3.80 5.70 8.54 12.81".split())
        self.assertIsNone(waits[-1])
        table = self.plan("--preset", "google-http-client-1.15", "--random", "0.5")
        for wait in "500 ms,750 ms,1.13 s,1.69 s,2.53 s,3.80 s,5.70 s,8.54 s,12.8 s".split(","):
            self.assertIn(f" {wait} ", table)
        self.assertIn("after attempt 10", table)
        self.assertIn("attempts_exhausted", table)

    def test_googles_published_table(self):
        # ExponentialBackOff of google-http-java-client: interval, and the range that it is from.
        published = """0.5 0.25 0.75|0.75 0.375 1.125|1.125 0.562 1.687|1.687 0.8435 2.53
            |2.53 1.265 3.795|3.795 1.897 5.692|5.692 2.846 8.538|8.538 4.269 12.807
            |12.807 6.403 19.210"""
        rows = self.plan("--preset", "google-http-client-1.15").splitlines()[2:]
        for number, row in enumerate(published.split("|"), 1):
            cells = rows[number - 1].split()
            self.assertEqual(cells[:2], [str(number), "503"])
            least, mean, most = zip(cells[2:8:2], cells[3:8:2])
            shown = (mean, least, most)
            for (time, unit), nominal in zip(shown, row.split()):
                in_seconds = float(time) / (1000 if unit == "ms" else 1)
                self.assertLess(abs(in_seconds / float(nominal) - 1), 0.005, rows[number - 1])
        self.assertEqual(rows[9].split(), ["10", "503"])

    def test_the_extremes_of_the_draw(self):
        preset = ("--preset", "equal-jitter")
        self.assertEqual(self.waits(*preset, "--random", "0")[:3], [500, 1000, 2000])
        self.assertEqual(self.waits(*preset, "--random", "1")[:3], [1000, 2000, 4000])

    def test_a_report_in_virtual_time(self):
        call = self.calls("--outcomes", "503,429:retry-after=7,refused,200", "GET", "http://h/p")
        self.assertIs(call["virtual"], True)
        self.assertEqual((call["url"], call["status"], call["stop_reason"]),
                         ("http://h/p", 200, "success"))
        self.assertEqual([a["status"] for a in call["attempts"]], [503, 429, None, 200])
        self.assertEqual(call["attempts"][1]["wait_ms"], 7000)
        self.assertEqual(call["attempts"][2]["error"]["kind"], "connect")
        self.assertEqual(call["attempts"][2]["sent"], "never")

    def test_a_timeout_takes_the_attempts_timeout(self):
        self.assertEqual(self.calls("--outcomes", "timeout,200")["attempts"][0]["duration_ms"],
                         30000)
        call = self.calls("--outcomes", "timeout,200", "--set", "attempt_timeout=2s")
        self.assertEqual(call["attempts"][0]["duration_ms"], 2000)

    def test_times_of_a_scenario_are_those_of_the_virtual_clock(self):
        now = ("--now", "2026-01-02T03:04:05Z")
        for text, wait in (("now+60", 60000), ("now+1.5", 2000), ("now+2m", 120000),
                           ("now-5", 0)):
            attempts = self.calls(*now, "--outcomes", f"429:retry-after={text},200", "--set",
                                  "server_delay.combine=server", "--set", "server_delay.max=10m",
                                  "--set", "max_elapsed_time=none")["attempts"]
            self.assertEqual(attempts[0]["wait_ms"], wait, text)
        # The time is that at the end of the delay.
        (self.folder / "s.json").write_text(json.dumps({"steps": [
            {"status": 429, "delay": "90s", "headers": {
                "X-RateLimit-Reset": {"at": "now+1h", "as": "epoch"}}}]}))
        call = self.calls(*now, "--scenario", "s.json", "--set", "max_elapsed_time=none")
        self.assertEqual((call["stop_reason"], call["retry_at"]),
                         ("server_delay_too_long", "2026-01-02T04:05:35.000Z"))
        (self.folder / "s.json").write_text(
            '{"steps": [{"status": 429, "headers": {"Retry-After": {"at": "soon", "as": "date"}}}]}')
        message = self.run_program("plan", "--scenario", "s.json", status=2).stderr.decode()
        self.assertIn('s.json:1:62: /steps/0/headers/Retry-After/at: "soon" is not a time', message)
        self.assertIn('"date" is not one of http-date, epoch, epoch-ms', message)

    def test_the_clock_begins_at_the_real_date_unless_told(self):
        args = ("--outcomes", "503:retry-after=now+1h")
        begin = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)
        retry_at = datetime.datetime.fromisoformat(
            self.calls(*args)["retry_at"].replace("Z", "+00:00"))
        end = datetime.datetime.now(datetime.timezone.utc)
        hour = datetime.timedelta(hours=1)
        self.assertTrue(begin + hour <= retry_at <= end + hour, (begin, retry_at, end))
        self.assertEqual(self.calls(*args, "--now", "2026-01-02 03:04:05")["retry_at"],
                         "2026-01-02T04:04:05.000Z")

    def test_a_post_is_not_repeated_after_a_reset(self):
        call = self.calls("--outcomes", "reset,200", "POST", "http://h/")
        self.assertEqual(call["stop_reason"], "unsafe_to_repeat")

    def test_the_ending_says_what_the_server_asks_for(self):
        table = self.plan("--outcomes", "503:retry-after=3600")
        self.assertIn("ends after attempt 1, at 0 s: server_delay_too_long", table)
        self.assertTrue(table.endswith(", the server asks for 60.0 min\n"), table)

    def test_the_table_of_ranges(self):
        table = self.plan("--preset", "equal-jitter").splitlines()
        self.assertEqual(table[1].split(),
                         "attempt outcome least mean most total (mean)".split())
        self.assertEqual(table[2].split(), "1 503 500 ms 750 ms 1.00 s 750 ms".split())
        self.assertRegex(table[-1], r"^ends after attempt 6, at .*: attempts_exhausted")

    def test_an_attempt_is_sent_when_no_guard_holds_it_back_any_more(self):
        table = self.plan("--set", 'rate={"limit": "6/m"}', "--outcomes", "503,503,200").splitlines()
        header = next(number for number, line in enumerate(table) if line.split()[:2] == ["attempt", "at"])
        self.assertIn("held back", table[header])
        first, second, third = (line.split() for line in table[header + 1:header + 4])
        self.assertEqual((first[1:3], second[1:3], third[1:3]), (["0", "s"], ["10.0", "s"], ["20.0", "s"]))
        self.assertIn("9.78 s rate", table[header + 2])
        self.assertIn("at 20.0 s", table[header + 4])
        self.assertNotIn("held back", self.plan("--outcomes", "503,503,200"))

    def test_budgets_carry_over(self):
        calls = self.calls("--repeat", 40, "--outcomes", "503")
        self.assertEqual(len(calls), 40)
        self.assertEqual({call["stop_reason"] for call in calls},
                         {"attempts_exhausted", "budget_exhausted"})

    def test_calls_at_once_share_what_may_be_under_way(self):
        budget = ("--set", 'budget={"kind": "concurrent", "ratio": 0.2, "min": 1}', "--set", "max_attempts=2")
        (self.folder / "slow.json").write_text('{"steps": [{"status": 503, "delay": "1s"}]}')
        calls = self.calls("--parallel", 10, *budget, "--scenario", "slow.json")
        self.assertEqual(sorted(len(call["attempts"]) for call in calls), [1] * 8 + [2] * 2)
        self.assertEqual(sorted(call["stop_reason"] for call in calls),
                         ["attempts_exhausted"] * 2 + ["budget_exhausted"] * 8)
        self.assertEqual([call["attempts"][0]["budget_left"] for call in calls], [1] + [0] * 9)
        # One after the other, there is always a place.
        calls = self.calls("--repeat", 10, *budget, "--outcomes", "503,200")
        self.assertEqual([[a["budget_left"] for a in call["attempts"]] for call in calls], [[0, 1]] * 10)

    def test_each_call_meets_the_scenario_from_its_beginning(self):
        calls = self.calls("--repeat", 3, "--outcomes", "503,503,200")
        self.assertEqual([[a["status"] for a in call["attempts"]] for call in calls],
                         [[503, 503, 200]] * 3)
        # Each call takes 5 twice, and gives the last 5 back.
        self.assertEqual([call["attempts"][-1]["budget_left"] for call in calls], [495, 490, 485])
        (self.folder / "s.json").write_text(
            '{"steps": [{"status": 503}, {"status": 200}], "then": "restart"}')
        calls = self.calls("--repeat", 2, "--scenario", "s.json")
        self.assertEqual([len(call["attempts"]) for call in calls], [2, 2])

    def test_a_wait_without_an_end_ends_the_plan(self):
        result = self.run_program(
            "plan", "--format", "json", "--random", "1", "--outcomes", "503",
            "--set", "max_attempts=60", "--set", "max_elapsed_time=none",
            "--set", 'backoff={"kind": "exponential", "initial": "1h", "multiplier": 10}')
        self.assertIn(b"its wait is longer than the clock can represent", result.stderr)
        waits = [a["wait_ms"] for a in json.loads(result.stdout)["attempts"]]
        self.assertEqual(waits[:3], [3.6e6, 3.6e7, 3.6e8])
        self.assertEqual(waits[-1], max(waits))
        self.assertLess(len(waits), 60)

    def test_a_success_by_rule_is_one_whatever_its_status(self):
        (self.folder / "s.json").write_text(
            '{"steps": [{"status": 409, "headers": {"x-done": "1"}}]}')
        call = self.calls("--scenario", "s.json", "--set",
                          'retry_on.error_codes=[{"header": "x-done", "as": "success"}]')
        self.assertEqual((call["stop_reason"], call["status"]), ("success", 409))
        self.assertEqual(self.calls("--outcomes", "409")["stop_reason"], "not_retryable")

    def test_the_same_seed_gives_the_same(self):
        args = ("--preset", "full-jitter", "--seed", 7)
        self.assertEqual(self.plan(*args), self.plan(*args))
        self.assertNotEqual(self.waits(*args), self.waits("--preset", "full-jitter", "--seed", 8))

    def test_it_stops_after_a_thousand_attempts(self):
        result = self.run_program(
            "plan", "--preset", "google-http-client", "--set", 'backoff={"kind": "none"}',
            "--format", "json")
        self.assertEqual(len(json.loads(result.stdout)["attempts"]), 1000)
        self.assertEqual(result.stderr, b"httpretry: stopped after 1000 attempts\n")

    def test_names_of_a_policy_file_do_not_control_the_terminal(self):
        (self.folder / "p.json").write_text(json.dumps({
            "version": 1, "policies": {"a\x1b[31m": {"preset": "standard"}},
            "endpoints": [{"name": "b\x1b[32m", "match": {"host": "h"}, "policy": "a\x1b[31m"}]}))
        text = self.plan("--policy", "p.json", "--outcomes", "503,200", "GET", "http://h/")
        self.assertNotIn("\x1b", text)
        self.assertIn("[31m, endpoint b", text)

    def test_a_scenario_file(self):
        (self.folder / "s.json").write_text(json.dumps({
            "steps": [{"status": 503, "headers": {"Retry-After": "2"}, "delay": "50ms", "times": 2},
                      {"status": 200}],
            "paths": {"/other": {"steps": [{"status": 404}]}}}))
        attempts = self.calls("--scenario", "s.json", "http://h/x")["attempts"]
        self.assertEqual([a["status"] for a in attempts], [503, 503, 200])
        self.assertEqual([a["start_ms"] for a in attempts], [0, 2050, 5600])
        self.assertEqual(self.calls("--scenario", "s.json", "http://h/other")["status"], 404)

    def test_all_problems_of_a_scenario_are_named_with_their_places(self):
        (self.folder / "s.json").write_text(
            '{"steps": [{"fault": "rest"},\n {"statu": 1, "status": 99, "delay": "x"}],\n'
            ' "then": "again"}')
        lines = self.run_program("plan", "--scenario", "s.json",
                                 status=2).stderr.decode().splitlines()
        self.assertEqual(lines[0], "httpretry: the scenario has errors:")
        self.assertEqual(lines[1:-1], [
            's.json:1:22: /steps/0/fault: "rest" is not a fault; did you mean "reset"?',
            's.json:2:3: /steps/1/statu: unknown key; did you mean "status"?',
            's.json:2:25: /steps/1/status: 99 is out of range: 200 to 999',
            's.json:2:38: /steps/1/delay: "x" is not a duration: write it like "250ms", '
            '"1.5s" or "1h30m"; the units are h, m, s, ms, us and ns',
            's.json:3:10: /then: "again" is not one of repeat_last, restart, close'])

    def test_the_drawing(self):
        (self.folder / "s.json").write_text(json.dumps({
            "steps": [{"status": 503, "delay": "1s", "times": 2}, {"status": 200}]}))
        for name, args in (
                ("ranges", ("--preset", "equal-jitter")),
                ("limit", ("--preset", "exponential", "--set", "max_elapsed_time=10s")),
                ("call", ("--scenario", "s.json", "--random", "1", "PUT",
                          "http://h/" + "long/" * 30 + "<&>"))):
            text = self.plan("--format", "svg", *args)
            golden = DATA / f"plan_{name}.svg"
            if os.environ.get("HTTPRETRY_UPDATE"):
                golden.write_text(text)
            self.assertEqual(text, golden.read_text())
            drawing = xml.etree.ElementTree.fromstring(text)
            self.assertEqual(drawing.tag, SVG + "svg")
        many = self.run_program("plan", "--preset", "google-http-client", "--set",
                                'backoff={"kind": "none"}', "--format", "svg")
        self.assertIn(b"and 960 more", many.stdout)
        self.assertIn(b"stopped after 1000 attempts", many.stderr)

    def drawing(self, *args):
        return xml.etree.ElementTree.fromstring(self.plan("--format", "svg", *args))

    def texts(self, drawing):
        return [text.text for text in drawing.iter(SVG + "text")]

    def test_the_drawing_gives_each_class_a_mark_of_its_own(self):
        (self.folder / "s.json").write_text(json.dumps({"steps": [
            {"status": 503, "delay": "2s"}, {"status": 429}, {"fault": "refused"},
            {"status": 404}]}))
        drawing = self.drawing("--scenario", "s.json")
        marks = {each.get("class")[5:]: (each.tag, each.get("points") and
                                         len(each.get("points").split()))
                 for each in drawing.iter() if each.get("class", "").startswith("mark ")}
        self.assertEqual(marks, {
            "transient": (SVG + "rect", None), "throttle": (SVG + "polygon", 4),
            "transport": (SVG + "polygon", 3), "permanent": (SVG + "line", None)})
        times = [each for each in drawing.iter(SVG + "rect") if "time" in each.get("class")]
        self.assertEqual([each.get("class") for each in times], ["time transient"])
        self.assertGreater(float(times[0].get("width")), 20)  # the others took no time
        self.assertIn("2.00 s", self.texts(drawing))

    def test_the_drawing_says_what_is_unlimited(self):
        texts = " ".join(self.texts(self.drawing(
            "--set", "max_attempts=unlimited", "--outcomes", "503,200")))
        self.assertIn(
            "max_attempts unlimited, max_elapsed_time 1.00 min, attempt_timeout unlimited", texts)

    def test_nothing_of_the_drawing_is_cut_at_its_edges(self):
        (self.folder / "s.json").write_text(json.dumps({"steps": [
            {"status": 503, "delay": "9s"}, {"status": 200}]}))
        for args in (("http://h/" + "W" * 300,), ("http://h/" + "i/" * 300,),
                     ("--scenario", "s.json", "--set", "max_elapsed_time=10s"),
                     ("--set", 'backoff={"kind": "constant", "interval": "1100ms"}',
                      "--set", "max_elapsed_time=1h", "--set", "max_attempts=50")):
            drawing = self.drawing(*args)
            width, height = float(drawing.get("width")), float(drawing.get("height"))
            self.assertTrue(self.texts(drawing))
            for text in drawing.iter(SVG + "text"):
                letter = {"title": 10.8, "small": 7}.get(text.get("class"), 8.3)
                wide = sum(1.5 if c in "WM" else 1 for c in text.text) * letter
                end = float(text.get("x")) + {"end": 0, "middle": wide / 2}.get(
                    text.get("text-anchor"), wide)
                begin = end - wide
                self.assertTrue(0 <= begin and end <= width, (text.text, begin, end))
                self.assertTrue(10 <= float(text.get("y")) <= height - 4, text.text)

    def test_the_numbers_of_an_axis_differ(self):
        for wait in ("1ns", "3ns", "17us", "1ms", "59s", "7m", "100h"):
            texts = self.texts(self.drawing(
                "--set", f'backoff={{"kind": "constant", "interval": "{wait}"}}', "--set",
                "max_elapsed_time=none", "--set", "max_attempts=2"))
            upper = texts[texts.index("total (mean)") + 1:texts.index("1")]
            self.assertGreaterEqual(len(upper), 2, wait)
            self.assertEqual(len(set(upper)), len(upper), upper)

    def test_counts_and_end_of_the_drawing_agree(self):
        texts = self.texts(self.drawing("--set", "max_attempts=45",
                                        "--set", "max_elapsed_time=none"))
        self.assertIn("and 5 more: 45 attempts in all", texts)
        runs = [text for text in texts if text.startswith("45 attempts, ")]
        self.assertEqual(len(runs), 3)
        time = runs[1].split(", ")[1]
        self.assertEqual(texts[-1],
                         f"ends after attempt 45, at {time}: attempts_exhausted (max_attempts 45 "
                         "reached)")
        # Also where a wait depends on the one before.
        texts = self.texts(self.drawing("--preset", "decorrelated-jitter"))
        mean = next(text for text in texts[texts.index("mean"):] if text.startswith("6 attempts, "))
        time = mean.split(", ")[1]
        self.assertIn(f"at {time}:", texts[-1])
        self.assertEqual(texts.count(time), 2)  # the totals of the last two rows
        # Calls that end otherwise are named, as in the table.
        args = ("--preset", "standard", "--set", "max_elapsed_time=3s")
        table = self.plan(*args).splitlines()
        self.assertTrue(any(line.startswith("with the ") for line in table))
        ends = [line for line in table if line.startswith(("ends ", "with "))]
        shown = "".join(self.texts(self.drawing(*args)))
        for end in ends:
            self.assertIn(end, shown)

    def test_what_it_refuses(self):
        for args, message in (
                (("--format", "svg", "--repeat", "2"), "cannot draw calls that are spread over time"),
                (("--format", "xml"), 'option --format: "xml" is not one of table, json, svg'),
                (("--random", "2"), '"2" is not a number from 0 to 1'),
                (("--random", "0", "--seed", "1"), "--random and --seed cannot be combined"),
                (("--outcomes", "503,tiemout"), 'did you mean "timeout"?'),
                (("--outcomes", "503:x"), "a part that is not HEADER=VALUE"),
                (("--repeat", "0"), "option --repeat must be from 1 to 1000"),
                (("--preset", "standrad"), 'option --preset: there is no preset "standrad"'),
                (("--outcomes", ""), "option --outcomes needs a value that is not empty"),
                (("--outcomes", ",200"), 'option --outcomes: "" is an empty item'),
                (("--outcomes", "200,"), 'option --outcomes: "" is an empty item'),
                (("--outcomes", "200:"), "a part that is not HEADER=VALUE"),
                (("--outcomes", "503:a b=c"), "has an invalid header"),
                (("--outcomes", "409:body=taken"), "sets a body, which only a file for --scenario can do"),
                (("--outcomes", "503:a b=now+1"), "has an invalid header"),
                (("--outcomes", "503:retry-after=now+1x"), "has a time that is not like now+60"),
                (("--now", "soon"), 'option --now: "soon" is not a date from 1970 to 2199'),
                (("--now", "2300-01-01"), '"2300-01-01" is not a date from 1970 to 2199'),
                (("--scenario", "none"), "option --scenario: cannot read none: No such file"),
                (("--scenario", "s", "--outcomes", "200"),
                 "--scenario and --outcomes cannot be combined"),
                (("a", "b", "c"), "plan takes at most a METHOD and a URL"),
                (("ftp://h/",), "its scheme must be http or https")):
            self.assertIn(message, self.usage_error("plan", *args))


if __name__ == "__main__":
    main()
