#!/usr/bin/env python3
"""Records the command in a terminal, and writes animated SVGs: record.py PROGRAM

PROGRAM is a built httpretry. A recording shows a session of a shell as it ran: all of its output, at the times at which
it came. Each session starts its own server on 127.0.0.1:8080, so this port must be free."""

import html
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import termios
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
COLUMNS, ROWS = 116, 30
LIMIT = 60  # seconds for a session
STILL = 5  # seconds for which the last picture stays
READ = 1.2  # seconds before the next command, to read this one
PROMPT = "$ "
COLORS = {"31": "#b3261e", "32": "#1a7f37", "33": "#9a6700", "2": "#57606a", "1": "#000000"}

# The file, the commands, and a line that the terminal must show at the end.
RECORDINGS = [
    ("apps/httpretry/trace.svg",
     ["httpretry serve --outcomes reset,503,429:retry-after=2,200 --listen 127.0.0.1:8080 > requests.jsonl &",
      "httpretry --trace http://127.0.0.1:8080/v1/items"],
     r"done: succeeded after 4 attempts in .* s: receive, 503, 429, 200"),
    ("lib/extras/batch/outage.svg",
     ["seq -f http://127.0.0.1:8080/items/%g 300 > items.txt",
      "# a server that runs for 5 s, stops, and starts again 4 s later",
      "serve='httpretry serve --outcomes 200 --listen 127.0.0.1:8080'",
      "(timeout 5 $serve; sleep 4; exec $serve) > requests.jsonl &",
      "httpretry batch --rate 40/s --set breaker.kind=consecutive --set breaker.failures=4 items.txt"],
     r"httpretry: 300 of 300 done"),
]


class Terminal:
    """The screen of a terminal after some output. Exits if it does not know a sequence of the output."""

    PIECE = re.compile(r"\x1b\[([\d;]*)([a-zA-Z])|\x1b\[\?\d+[hl]|([\r\n])|([^\x1b\r\n]+)")

    def __init__(self):
        self.rows = [[]]  # of cells: (character, color)
        self.row = self.column = 0
        self.color = ""

    def write(self, text):
        place = 0
        while place < len(text):
            piece = self.PIECE.match(text, place)
            if not piece:
                sys.exit(f"record.py does not know this output: {text[place:place + 20]!r}")
            place = piece.end()
            arguments, command, move, characters = piece.groups()
            if command == "m":
                self.color = next((COLORS[code] for code in arguments.split(";") if code in COLORS), "")
            elif command == "K":
                del self.rows[self.row][self.column:]
            elif command:
                sys.exit(f"record.py does not know the command {command} of terminals")
            elif move == "\r":
                self.column = 0
            elif move == "\n":
                self.down()
            for character in characters or "":
                self.put(character)

    def down(self):
        self.row += 1
        while len(self.rows) <= self.row:
            self.rows.append([])

    def put(self, character):
        if self.column == COLUMNS:
            self.down()
            self.column = 0
        row = self.rows[self.row]
        row += [(" ", "")] * (self.column - len(row))
        row[self.column:self.column + 1] = [(character, self.color)]
        self.column += 1

    def screen(self):
        return [tuple(row) for row in self.rows]


class Session:
    """A shell on a terminal. `output` is [(seconds since the beginning, text)]."""

    def __init__(self, program, folder):
        self.controller, terminal = pty.openpty()
        termios.tcsetwinsize(terminal, (ROWS, COLUMNS))
        environment = {"PATH": f"{program.parent}:{os.environ['PATH']}", "PS1": PROMPT, "TERM": "xterm",
                       "LC_ALL": "C.UTF-8", "HOME": folder}
        # +m: without messages about jobs.
        self.shell = subprocess.Popen(["dash", "-i", "+m"], stdin=terminal, stdout=terminal, stderr=terminal,
                                      cwd=folder, env=environment, start_new_session=True)
        os.close(terminal)
        self.begin = time.monotonic()
        self.output = []

    def wait_for_prompt(self):
        text = ""
        while not re.search(rf"(^|\n){re.escape(PROMPT)}$", text):
            left = LIMIT - (time.monotonic() - self.begin)
            if left < 0 or not select.select([self.controller], [], [], left)[0]:
                sys.exit(f"record.py: the session has not ended within {LIMIT} s")
            piece = os.read(self.controller, 65536).decode()
            self.output.append((time.monotonic() - self.begin, piece))
            text += piece

    def run(self, commands):
        self.wait_for_prompt()
        for command in commands:
            time.sleep(READ)
            os.write(self.controller, command.encode() + b"\n")
            self.wait_for_prompt()

    def end(self):
        os.killpg(self.shell.pid, signal.SIGKILL)
        self.shell.wait()
        os.close(self.controller)


def record(program, commands):
    with tempfile.TemporaryDirectory() as folder:
        session = Session(program, folder)
        try:
            session.run(commands)
        finally:
            session.end()
        return session.output


def spans_of(output):
    """Returns a list of all texts that were on the screen, as (row, cells, first second, last second), and the second
    of the last output. The last second is None for a text that stays."""
    terminal, shown, spans, second = Terminal(), {}, [], 0
    for second, piece in output:
        terminal.write(piece)
        for row, cells in enumerate(terminal.screen()):
            if shown.get(row, ((), 0))[0] != cells:
                if row in shown:
                    spans.append((row, *shown[row], second))
                shown[row] = (cells, second)
    spans += [(row, *known, None) for row, known in shown.items()]
    return [span for span in spans if span[1]], second


def title_of(commands):
    return "A recording of: " + "; ".join(commands)


def svg_text(cells):
    parts = []
    for place, (character, color) in enumerate(cells):
        if place == 0 or color != cells[place - 1][1]:
            parts.append([color, ""])
        parts[-1][1] += character
    return "".join(f'<tspan fill="{color}">{html.escape(text)}</tspan>' if color else html.escape(text)
                   for color, text in parts)


def svg_of(output, commands):
    spans, last = spans_of(output)
    total = last + STILL
    width, height = round(COLUMNS * 7.25) + 24, (max(row for row, *_ in spans) + 1) * 17 + 20
    keyframes, texts = {}, []
    for row, cells, first, end in sorted(spans, key=lambda span: (span[0], span[2])):
        times = (first, end)
        name = keyframes.setdefault(times, f"k{len(keyframes)}")
        kept = "" if end is None else ' class="gone"'
        texts.append(f'<text x="12" y="{row * 17 + 22}" style="animation-name:{name}"{kept}>{svg_text(cells)}</text>')
    rules = []
    for (first, end), name in keyframes.items():
        shown = f"{100 * first / total:.2f}%{{visibility:visible}}"
        hidden = "" if end is None else f"{100 * end / total:.2f}%{{visibility:hidden}}"
        rules.append(f"@keyframes {name}{{0%{{visibility:hidden}}{shown}{hidden}}}")
    title = html.escape(title_of(commands))
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"
 width="{width}" height="{height}" role="img">
<title>{title}</title>
<style>
text{{font:12px ui-monospace,"DejaVu Sans Mono",Menlo,Consolas,monospace;fill:#1f2328;white-space:pre;
animation:{total:.2f}s step-end infinite}}
.gone{{visibility:hidden}}
@media (prefers-reduced-motion:reduce){{text{{animation:none}}}}
{chr(10).join(rules)}
</style>
<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="6" fill="#f6f8fa" stroke="#d0d7de"/>
{chr(10).join(texts)}
</svg>
"""


def main(program):
    for file, commands, expected in RECORDINGS:
        output = record(program, commands)
        terminal = Terminal()
        terminal.write("".join(piece for _, piece in output))
        lines = ["".join(character for character, _ in row) for row in terminal.screen()]
        if not any(re.fullmatch(expected, line) for line in lines):
            sys.exit("record.py: this is not what the recording should show:\n" + "\n".join(lines))
        if len(lines) > ROWS:
            sys.exit(f"record.py: the session has more than {ROWS} lines")
        (ROOT / file).write_text(svg_of(output, commands))
        print(f"{file}: {output[-1][0]:.1f} s, {(ROOT / file).stat().st_size} bytes")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]).resolve())
