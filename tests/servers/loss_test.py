"""A network that loses packets: a name space of its own, where the machine allows it."""

import json
import os
import subprocess
import sys

from daemon import ServerTest, main
from program import LIMIT, NOT_HERE, PROGRAM, clean_environment

SPACE = f"httpretry-{os.getpid()}"
# Dropped where they arrive: a sender sees nothing of it. One in twelve makes timeouts of connections
# and of attempts, beside all that TCP mends by itself.
LOSS = """table inet loss {
  chain arriving {
    type filter hook input priority 0
    numgen random mod 12 == 0 counter drop
  }
}"""


def lossy_network():
    """Why there is none; None where there is."""
    inside = ["ip", "netns", "exec", SPACE]
    for command in (["ip", "netns", "add", SPACE], [*inside, "ip", "link", "set", "lo", "up"],
                    [*inside, "nft", LOSS]):
        done = subprocess.run(command, capture_output=True, check=False)
        said = done.stderr.decode().strip()
        assert "syntax error" not in said, said
        if done.returncode != 0:
            return f"`{' '.join(command)}` says: {said}"
    return None


class Loss(ServerTest):
    def setUp(self):
        super().setUp()
        self.addCleanup(subprocess.run, ["ip", "netns", "del", SPACE], capture_output=True,
                        check=False)
        why = lossy_network()
        if why:
            print("skipped:", why, file=sys.stderr)
            self.skipTest(NOT_HERE + why)

    def start(self, *args):
        """As everywhere, but inside the name space."""
        process = subprocess.Popen(["ip", "netns", "exec", SPACE, PROGRAM, *map(str, args)],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   cwd=self.folder, env=clean_environment())
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def serve(self):
        server = self.start("serve", "--outcomes", "200", "--log", "log.jsonl")
        return server.stdout.readline().decode().strip()

    def seen(self):
        """The targets, and that something was lost on the way."""
        listing = subprocess.run(["ip", "netns", "exec", SPACE, "nft", "list", "ruleset"],
                                 capture_output=True, check=True).stdout.decode()
        self.assertGreater(int(listing.partition("packets ")[2].split()[0]), 100)
        return [json.loads(line)["target"]
                for line in (self.folder / "log.jsonl").read_text().splitlines()]

    def test_everything_gets_through_and_the_books_agree(self):
        address = self.serve()
        # Shorter than the 200 ms after which TCP sends again: a lost packet ends the attempt.
        self.policy(max_attempts=20, connect_timeout="3s", attempt_timeout="150ms",
                    backoff={"kind": "constant", "interval": "10ms"})
        reports = self.finish(self.load(f"{address}/", 600))
        self.assertEqual({each["status"] for each in reports}, {200})
        self.assertGreater(sum(len(each["attempts"]) for each in reports), 600)
        self.books_agree(reports, self.seen())

    def test_no_post_is_done_twice(self):
        address = self.serve()
        self.policy(max_attempts=20, connect_timeout="3s", attempt_timeout="500ms",
                    backoff={"kind": "constant", "interval": "10ms"})
        load = self.load(f"{address}/", 600, "-d", "once")
        load.communicate(timeout=LIMIT)
        reports, seen = self.report(), self.seen()
        self.assertEqual(len(seen), len(set(seen)))
        self.books_agree(reports, seen)
        for each in reports:
            if each["status"] is None:
                self.assertEqual(each["stop_reason"], "unsafe_to_repeat", each)


if __name__ == "__main__":
    main("nft", "nftables")
