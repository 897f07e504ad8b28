"""A network that loses packets: a name space of its own, where the machine allows it."""

import os
import subprocess
import sys

from daemon import ServerTest, main
from program import PROGRAM, clean_environment

SPACE = f"httpretry-{os.getpid()}"


def lossy_network():
    """Why there is none; None where there is."""
    for command in (["ip", "netns", "add", SPACE],
                    ["ip", "netns", "exec", SPACE, "ip", "link", "set", "lo", "up"],
                    ["ip", "netns", "exec", SPACE, "tc", "qdisc", "add", "dev", "lo", "root",
                     "netem", "loss", "3%", "delay", "2ms"]):
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode != 0:
            return f"`{' '.join(command)}` says: {done.stderr.decode().strip()}"
    return None


class Loss(ServerTest):
    def setUp(self):
        super().setUp()
        self.addCleanup(subprocess.run, ["ip", "netns", "del", SPACE], capture_output=True,
                        check=False)
        why = lossy_network()
        if why:
            print("skipped, for this machine gives us no such network:", why, file=sys.stderr)
            self.skipTest(why)

    def inside(self, *args):
        process = subprocess.Popen(["ip", "netns", "exec", SPACE, PROGRAM, *map(str, args)],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   cwd=self.folder, env=clean_environment())
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_everything_gets_through_and_the_books_agree(self):
        server = self.inside("serve", "--outcomes", "200", "--log", "log.jsonl")
        address = server.stdout.readline().decode().strip()
        self.policy(max_attempts=20, attempt_timeout="2s",
                    backoff={"kind": "constant", "interval": "10ms"})
        (self.folder / "urls").write_text(
            "".join(f'url = "{address}/?{i}"\n' for i in range(300)))
        load = self.inside("-Z", "--policy", "policy.json", "--report", "report.json", "-s",
                           "-K", "urls")
        reports = self.finish(load)
        self.assertEqual({each["status"] for each in reports}, {200})
        seen = (self.folder / "log.jsonl").read_text().splitlines()
        attempts = [a for each in reports for a in each["attempts"]]
        self.assertLessEqual(sum(a["sent"] == "answered" for a in attempts), len(seen))
        self.assertLessEqual(len(seen), sum(a["wire_sends"] for a in attempts))


if __name__ == "__main__":
    main("ip", "iproute2")
