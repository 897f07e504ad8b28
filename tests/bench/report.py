"""Tables: printed while the measurements run, and written as Markdown when all is done."""
import datetime
import json
import os
import pathlib
import platform
import subprocess


class Table:
    def __init__(self, title, header, rows, note=""):
        self.title = title
        self.rows = [[str(cell) for cell in row] for row in [header, *rows]]
        self.note = note

    def text(self):
        widths = [max(len(row[i]) for row in self.rows) for i in range(len(self.rows[0]))]
        lines = ["", self.title]
        for row in self.rows:
            cells = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
            lines.append("  ".join([row[0].ljust(widths[0]), *cells]))
        return "\n".join([*lines, *([self.note] if self.note else [])])

    def markdown(self):
        head, *rows = (f"| {' | '.join(row)} |" for row in self.rows)
        ruler = "|---|" + "---:|" * (len(self.rows[0]) - 1)
        note = ["", self.note] if self.note else []
        return "\n".join([f"## {self.title}", "", head, ruler, *rows, *note, ""])


def said_by(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return (done.stdout or done.stderr).strip()


def machine():
    """What the figures were measured with: (thing, which)."""
    cpu = next((line.split(":", 1)[1].strip() for line in
                pathlib.Path("/proc/cpuinfo").read_text().splitlines()
                if line.startswith("model name")), platform.machine())
    versions = [("processor", f"{os.cpu_count()} x {cpu}"),
                ("kernel", platform.release()),
                ("compiler", said_by("g++", "--version").split("\n")[0]),
                ("server", said_by("/usr/sbin/nginx", "-v"))]
    for name, package in [("libcurl", "libcurl4"), ("Boost.Beast", "libboost-dev"),
                          ("POCO", "libpoco-dev"), ("cpp-httplib", "libcpp-httplib-dev"),
                          ("cpprestsdk", "libcpprest-dev"), ("libsoup", "libsoup-3.0-dev"),
                          ("Go", "golang-go"), ("urllib3", "python3-urllib3"),
                          ("undici", "node-undici")]:
        version = said_by("dpkg-query", "-W", "-f=${Version}", package)
        if version:
            versions.append((name, version))
    return versions


def write(path, tables, revision):
    """RESULTS.md: the last run, whole."""
    now = datetime.datetime.now(datetime.timezone.utc)
    about = Table("The machine", ["", ""], machine())
    text = f"""# Results

Written by `./dev bench` on {now:%Y-%m-%d at %H:%M} UTC, of revision {revision}; not by hand.

Instructions are those of user space, counted by callgrind: the same whatever else the machine does, but for how
often libcurl looks for a response that is not there yet, which is a percent or two.
CPU is user and system time of the whole client process, the median of interleaved rounds; the
server runs on another core. Compare CPU times within a table only: the machine may have been busy.

"""
    path.write_text(text + "\n".join(table.markdown() for table in [*tables, about]).rstrip() + "\n")


def write_json(path, measured):
    path.write_text(json.dumps(measured, indent=2) + "\n")
