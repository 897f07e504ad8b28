"""Files without an end, and files that may not become as large as they should."""

import resource
import signal
import subprocess

from program import LIMIT, PROGRAM, ProgramTest, Response, clean_environment, main


class Endless(ProgramTest):
    def test_reading_stops_at_a_limit(self):
        url = "http://127.0.0.1:1/"
        for status, args in ((1, ("policy", "check", "/dev/zero")), (26, ("-K", "/dev/zero")),
                             (3, ("--policy", "/dev/zero", url)), (26, ("-H", "@/dev/zero", url)),
                             (2, ("plan", "--scenario", "/dev/zero"))):
            with self.subTest(args=args):
                result = self.run_program(*args, status=status)
                self.assertIn(b"/dev/zero: it has more than 64 MiB", result.stdout + result.stderr)

    def test_data_may_be_larger(self):
        result = self.run_program("-d", "@/dev/zero", "http://127.0.0.1:1/", status=26)
        self.assertIn(b"/dev/zero: it has more than 1024 MiB", result.stderr)


class Limits(ProgramTest):
    def test_a_file_that_becomes_too_large_leaves_nothing(self):
        server = self.server(Response(200, b"b" * 100_000))
        (self.folder / "out").write_text("old")

        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it

        result = subprocess.run([PROGRAM, "-o", "out", server.url()], capture_output=True,
                                preexec_fn=limit, timeout=LIMIT, check=False, cwd=self.folder,
                                env=clean_environment())
        self.assertEqual(result.returncode, 23, result.stderr)
        self.assertIn(b"File too large", result.stderr)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["out"])
        self.assertEqual((self.folder / "out").read_text(), "old")


if __name__ == "__main__":
    main()
